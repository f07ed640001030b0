/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin behind ours has seen; exported by plugin_behind.c as `behind_seen`. */
#ifndef TEST_PLUGIN_BEHIND_H
#define TEST_PLUGIN_BEHIND_H

#include <stddef.h>
#include <stdint.h>

struct behind_seen {
    /* profiler */
    int init, start, stop, record, finalize;
    int init_version;
    int nodes, ranks, rank;
    uint64_t hash;
    uint64_t types; /* OR of the kinds of events */
    uint64_t last_type;
    void *parent;
    int channels;
    const char *func, *algo;
    int state;
    int *mask;
    /* tuner */
    int tuner_init, ask, tuner_finalize, asked_version;
    int registered;
    /* env */
    int env_init, env_finalize, env_get;
};

#endif
