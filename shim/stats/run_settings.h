/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings asked and got: what stood in each process's environment and who put it there, what NCCL
 * asked for, and where processes differ.
 */
#ifndef NCCLSHIM_STATS_RUN_SETTINGS_H
#define NCCLSHIM_STATS_RUN_SETTINGS_H

#include "shim/stats/run.h"

enum setting_read {
    SETTING_READ_UNKNOWN, /* this NCCL does not tell (no env plugin interface) */
    SETTING_READ,         /* NCCL asked for it */
    SETTING_NOT_READ,     /* NCCL asked for others, not for this one */
};

struct run_setting_value {
    char *value;    /* NULL = not set in that process */
    char *got;      /* what NCCL was answered, where it differs from value; else NULL */
    uint8_t origin; /* enum ncclshim_origin */
    bool lost;      /* the profile asked for another value and did not get its way */
};

struct run_setting {
    char *name;
    struct run_setting_value *by_process;
    enum setting_read read;
    bool differs; /* not the same in all processes */
};

struct run_settings {
    struct run_setting *items; /* by name */
    size_t count;
    bool differ;         /* any of them differs */
    bool digests_differ; /* the processes' own digests of what NCCL had, which also cover what no
                            note tells */
};

/* 0, or -1 when memory is out. */
int run_settings_gather(const struct run *r, struct run_settings *s);
void run_settings_free(struct run_settings *s, const struct run *r);
/* The value most processes have; NULL when most have none. */
const struct run_setting_value *run_setting_usual(const struct run_setting *s, const struct run *r);
/* Had NCCL the same in both processes, wherever it came from? */
bool run_setting_same(const struct run_setting_value *a, const struct run_setting_value *b);
const struct run_setting *run_setting_named(const struct run_settings *s, const char *name);

#endif
