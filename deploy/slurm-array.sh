#!/bin/bash
# Workers that share a run: sbatch slurm-array.sh MY_PROJECT
# MY_PROJECT is a folder with settings.yaml and workflows/ that all nodes see. Its output is in a
# bucket. Tasks may start at different times, and may be requeued.
#SBATCH --job-name=graphrag-index
#SBATCH --array=1-8
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --output=graphrag-index-%A-%a.log
set -euo pipefail

export GRAPHRAG_INDEX_CACHE="${TMPDIR:-/tmp}/graphrag-index-$SLURM_ARRAY_TASK_ID"
exec graphrag-index worker --root "$1" --workers "$SLURM_CPUS_PER_TASK"
