/** The bar between two panels: it is moved with a pointer, or with the arrow keys. */

interface SplitterProps {
  label: string;
  /** The width of the panel beside the bar, in pixels. */
  value: number;
  min: number;
  max: number;
  initial: number;
  /** 1 if the panel is on the left of the bar, -1 if it is on the right. */
  direction: 1 | -1;
  onChange: (value: number) => void;
}

// Pixels of one press of an arrow key.
const STEP = 24;

export function Splitter({ label, value, min, max, initial, direction, onChange }: SplitterProps) {
  const move = (to: number) => onChange(Math.round(Math.min(max, Math.max(min, to))));
  const onPointerDown = (event: PointerEvent) => {
    const bar = event.currentTarget as HTMLElement;
    const from = event.clientX;
    bar.setPointerCapture(event.pointerId);
    bar.onpointermove = (moved) => move(value + direction * (moved.clientX - from));
    bar.onpointerup = bar.onpointercancel = () => { bar.onpointermove = null; };
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowLeft: -STEP, ArrowRight: STEP };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    move(value + direction * step);
  };
  return (
    <div class="splitter" role="separator" aria-orientation="vertical" aria-label={label} tabIndex={0}
      aria-valuenow={value} aria-valuemin={min} aria-valuemax={max}
      onPointerDown={onPointerDown} onKeyDown={onKeyDown} onDblClick={() => onChange(initial)} />
  );
}
