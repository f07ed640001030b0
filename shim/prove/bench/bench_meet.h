/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ranks meet beside NCCL: to hand out unique ids, to start together, to bring results together.
 * Ranks of one host do it in shared memory, where a barrier takes less than a microsecond; ranks of
 * several hosts over TCP, a star around rank 0.
 *
 * One bench_meet belongs to one rank. Calls are collective: all ranks make the same ones. When a
 * rank has failed they return -1 with an empty error: that rank has told why.
 */
#ifndef NCCLSHIM_PROVE_BENCH_MEET_H
#define NCCLSHIM_PROVE_BENCH_MEET_H

#include "shim/prove/bench/bench_share.h"

struct bench_meet {
    int rank, ranks;
    struct bench_shm *shm;  /* NULL: over TCP */
    int fds[WORKLOAD_RANKS]; /* rank 0: of each other rank; the others: fds[0]. -1 = none */
};

/* Everyone gives `size` bytes and gets all, by rank. 0, or -1. */
int bench_meet_exchange(struct bench_meet *m, const void *mine, size_t size, void *all,
                        struct error *e);
int bench_meet_barrier(struct bench_meet *m, struct error *e);
/* A barrier that all leave at nearly the same time, however long they waited for it. */
int bench_meet_align(struct bench_meet *m, struct error *e);
/* This rank failed: the others leave their barriers. */
void bench_meet_fail(struct bench_meet *m);

/*
 * Find the other ranks of a launcher; `job` must be the same on all (a digest of what is to be
 * done). Gives up after timeout_s. 0, or -1 with *e filled.
 */
int bench_meet_connect(struct bench_meet *m, const struct bench_settings *set, uint64_t job,
                       struct error *e);
void bench_meet_close(struct bench_meet *m);
/* Remove what a rank that was killed in the middle of it left in a file system. */
void bench_meet_forget(const struct bench_settings *set);

/* Blocking transfers of whole messages. 0, or -1 with *e filled. */
int bench_tcp_send(int fd, const void *data, size_t size, struct error *e);
int bench_tcp_receive(int fd, void *data, size_t size, struct error *e);

#endif
