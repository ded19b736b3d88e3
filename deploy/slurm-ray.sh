#!/bin/bash
# A run on a Ray cluster of the nodes of one Slurm job: sbatch slurm-ray.sh MY_PROJECT
# MY_PROJECT is a folder with settings.yaml and workflows/ that the first node sees. If that node
# dies, Slurm queues the job again, and the run goes on with what lies in CACHE.
#SBATCH --job-name=graphrag-index
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --time=24:00:00
#SBATCH --no-kill
#SBATCH --requeue
#SBATCH --output=graphrag-index-%j.log
set -euo pipefail

# On a disk that all nodes see and that lasts: the working copy of the bucket, with the replies that
# were paid for.
export GRAPHRAG_INDEX_CACHE="${CACHE:-$HOME/.cache/graphrag-index}"
# Seconds that the nodes wait for each other.
export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=600
head="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"
address="$head:6379"

# Ray starts on each node, and the command on the first one.
srun --no-kill ray symmetric-run --address "$address" --min-nodes "$SLURM_JOB_NUM_NODES" \
    --num-cpus "$SLURM_CPUS_PER_TASK" -- \
    env RAY_ADDRESS="$address" graphrag-index run --runner ray --root "$1"
