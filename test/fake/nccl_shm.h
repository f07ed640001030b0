/* SPDX-License-Identifier: Apache-2.0 */
/* The shared file's structs, for nccl_shm.c and nccl_msg.c alone. */
#ifndef FAKE_NCCL_SHM_H
#define FAKE_NCCL_SHM_H

#include "test/fake/nccl_fake.h"

#define HOST_BYTES 64

struct meeting {
    _Alignas(64) atomic_ullong arrived;
    _Alignas(64) atomic_ullong done;
    atomic_uint futex, sleepers;
};

struct map {
    atomic_ullong magic, present;
    int nranks;
    size_t stage_bytes;
    atomic_int joined, failed;
    struct meeting host, device, message;
};

/* From one rank to another. The pair's n-th message uses the places of n's parity. */
struct channel {
    _Alignas(64) atomic_ullong sends, recvs; /* messages announced by either side */
    uint64_t send_arrival[2], recv_arrival[2], send_bytes[2], recv_bytes[2];
    _Alignas(64) atomic_ullong written, read; /* pieces of data */
};

struct fake_shm {
    struct map *map;
    size_t total;
    int rank;
    atomic_int *abort_flag;
    uint64_t host_round, device_round;
    bool timed_out;
    struct fake_head *heads;
    char (*host_data)[HOST_BYTES];
    struct channel *channels;
    char *messages;
    size_t message_bytes;
    char *stage, *result;
};

uint64_t fake_now_ns(void);
uint64_t fake_timeout_ns(void);
void fake_futex_wait(atomic_uint *word, unsigned seen);
void fake_futex_wake(atomic_uint *word);

#endif
