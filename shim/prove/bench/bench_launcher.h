/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Was this process started by somebody who starts ranks (mpirun, srun, torchrun)? Then it is one
 * rank of what was started, and finds the others by what that launcher put into the environment:
 *
 *   torchrun        RANK, WORLD_SIZE, LOCAL_RANK; MASTER_ADDR and MASTER_PORT (+ 1 where torchrun's
 *                   own store sits on that port)
 *   Open MPI        OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK
 *   MPICH, Intel    PMI_RANK, PMI_SIZE, MPI_LOCALRANKID
 *   Slurm (a step)  SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID
 *
 * Without MASTER_ADDR and MASTER_PORT, rank 0 writes its address into a file: in the folder that
 * NCCLSHIM_RENDEZVOUS names (all hosts must see it), else in /dev/shm under the name of the job,
 * which serves one host.
 */
#ifndef NCCLSHIM_PROVE_BENCH_LAUNCHER_H
#define NCCLSHIM_PROVE_BENCH_LAUNCHER_H

#include "shim/base/error.h"

struct bench_launcher {
    char name[16];
    int rank, ranks, local_rank; /* local_rank -1: not told */
    char host[256];              /* rank 0's; "" = by file */
    int port;
    char file[640];              /* without the phase, which is put behind it */
    int one_host;                /* the file lies in /dev/shm: rank 0 listens on loopback alone */
};

/* 1 and *l when it was, 0 when not, -1 with *e filled when the variables do not fit together. */
int bench_launcher_find(struct bench_launcher *l, struct error *e);

#endif
