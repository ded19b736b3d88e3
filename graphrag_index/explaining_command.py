"""Commands whose help has one style, and that say what to do about an unexpected argument."""

from typing import Any

from typer.core import TyperCommand


class ExplainingCommand(TyperCommand):
    """A command that explains how a project, or a question of several words, is given."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Write the usage as documents do: [NAME] may be left out, and NAME may not."""
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, and end the program if there are too many."""
        ctx.allow_extra_args = True
        rest: list[str] = super().parse_args(ctx, args)
        if ctx.args:
            names = {name for param in self.params for name in (*param.opts, param.name)}
            hint = ""
            if "question" in names:
                hint = " Put a question of several words in quotes."
            elif "--root" in names:
                hint = f" A project is given by its folder: --root {ctx.args[0]}"
            ctx.fail(f"Unexpected argument {ctx.args[0]!r}.{hint}")
        return rest
