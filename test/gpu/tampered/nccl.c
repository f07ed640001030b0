/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tampered NCCL: under one setting its all-reduce gives a wrong element, under another it never
 * returns. What `bench` and `tune` make of that is then tested with real kernels, too.
 *
 *     TAMPERED_WRONG=NAME=VALUE   wrong where the environment has NAME=VALUE
 *     TAMPERED_HANG=NAME=VALUE    stuck where it has that
 *
 * Everything is handed on to libnccl-real.so.2, which is to lie beside it: a link to NCCL 2.28 or
 * newer. Handed on to pncclX, which with the shim in front stays with the library.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/preload/nccl_api.h"

#define NEWEST "22807" /* what later releases added is not there */

/* A jump needs no types. Weak: a library that lacks one can be loaded all the same. */
#if defined(__aarch64__)
#define JUMP "b pnccl"
#define AFTER "\n"
#else
#define JUMP "jmp pnccl"
#define AFTER "@PLT\n"
#endif
#define HAND_ON(name, since, ...)                                                          \
    __asm__(".ifnc " #name ",AllReduce\n"                                                  \
            ".if " #since " <= " NEWEST "\n"                                               \
            ".text\n"                                                                      \
            ".globl nccl" #name "\n"                                                       \
            ".type nccl" #name ", %function\n"                                             \
            ".weak pnccl" #name "\n"                                                       \
            "nccl" #name ":\n" JUMP #name AFTER ".size nccl" #name ", . - nccl" #name "\n" \
            ".endif\n"                                                                     \
            ".endif\n");
NCCLSHIM_API_OWN(HAND_ON)
NCCLSHIM_API_OWN0(HAND_ON)
NCCLSHIM_API_PASS(HAND_ON)
NCCLSHIM_API_TEXT(HAND_ON)

static bool holds(const char *condition)
{
    const char *text = getenv(condition), *eq = text ? strchr(text, '=') : NULL, *value;
    char name[64];

    if (!eq || snprintf(name, sizeof(name), "%.*s", (int)(eq - text), text) >= (int)sizeof(name))
        return false;
    value = getenv(name);
    return value && !strcmp(value, eq + 1);
}

/* Two bytes that are the sum of no small numbers, in the order of the stream: in a graph as well.
 */
static ncclResult_t spoil(void *recv, cudaStream_t stream)
{
    int (*fill)(unsigned long long, unsigned char, size_t, void *);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found = driver ? dlsym(driver, "cuMemsetD8Async") : NULL;

    memcpy(&fill, &found, sizeof(found));
    return found && fill((unsigned long long)(size_t)recv, 0x55, 2, stream) == 0 ? ncclSuccess
                                                                                 : ncclSystemError;
}

ncclResult_t pncclAllReduce(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                            cudaStream_t) __attribute__((weak, visibility("default")));
ncclResult_t ncclAllReduce(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t) __attribute__((visibility("default")));

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    ncclResult_t rc;

    while (holds("TAMPERED_HANG"))
        pause();
    rc = pncclAllReduce(send, recv, count, type, op, comm, stream);
    return rc == ncclSuccess && holds("TAMPERED_WRONG") ? spoil(recv, stream) : rc;
}
