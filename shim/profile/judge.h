/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `check`: what the files of rules (check_*.c) share. */
#ifndef NCCLSHIM_PROFILE_JUDGE_H
#define NCCLSHIM_PROFILE_JUDGE_H

#include "shim/profile/check.h"
#include "shim/profile/nccl_vars.h"

struct judge {
    const struct profile *p;
    const struct settings *s;
    const struct conf_files *conf;
    int version; /* 0 = not known */
    struct findings *out;
};

/* A finding on a setting of the environment. */
#define ON_SETTING(j, severity, set, advice, ...)                                              \
    finding_add((j)->out, (severity), (set)->name, "", &(set)->place, (set)->origin, (advice), \
                __VA_ARGS__)

/* Number of a setting as NCCL reads it; `missing` when it is not set. */
long long setting_number(const struct setting *s, long long missing);

/* Was it this profile that set it? */
static inline bool from_profile(const struct setting *s)
{
    return s->origin == NCCLSHIM_ORIGIN_PROFILE || s->origin == NCCLSHIM_ORIGIN_OVERRIDE;
}

/* The library in question is, or by the profile's `nccl` key can only be, older than this. */
bool older_than(const struct judge *j, int version);

void check_values(const struct judge *j);   /* each variable by itself */
void check_choices(const struct judge *j);  /* algorithms, protocols, rules */
void check_limits(const struct judge *j);   /* channels, CTAs, communicators' sections */
void check_versions(const struct judge *j); /* what the library does not have */
void check_conf(const struct judge *j);     /* NCCL's own files */

#endif
