/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a profile does to the environment of one process: a pure decision, carried out by the shared
 * object's constructor and shown by `ncclshim show`.
 *
 * The rule: [env] gives a value where the process has none, [env override] gives it always. An
 * empty value in the environment counts as a value, except for NCCL's numbers, where NCCL itself
 * takes empty for unset; the user's choice is kept in both cases.
 *
 * Children inherit what the parent's constructor set, and must not take it for the user's choice:
 * a worker under another profile gets that profile, not a mixture. So the constructor leaves a mark
 * in the environment (PROFILE_MARK_VARIABLE) that names what it set, with a digest of each value
 * and the user's value that an override replaced. A variable that still has the marked value is
 * ours; one that was changed since is the program's or the user's, and is kept as such.
 */
#ifndef NCCLSHIM_PROFILE_APPLY_H
#define NCCLSHIM_PROFILE_APPLY_H

#include "include/ncclshim/log.h"
#include "shim/profile/profile.h"

#define PROFILE_MARK_VARIABLE "NCCLSHIM_APPLIED"

enum env_action {
    ENV_KEEP,  /* nothing to do: the process's own value stays, or already is ours */
    ENV_SET,   /* setenv(name, value, 1) */
    ENV_UNSET, /* unsetenv(name): a parent's profile set it, this one does not ask for it */
};

struct env_plan_entry {
    const char *name;
    const char *value; /* what the profile asks for; with ENV_SET and no setting, the user's value
                          that a parent's override had replaced; NULL with ENV_UNSET */
    const char *old;   /* the user's own value, NULL = had none (what a parent's constructor set
                          is not the user's) */
    int origin;        /* enum ncclshim_origin of what is in force afterwards: USER, PROFILE or
                          OVERRIDE */
    enum env_action action;
    bool set;                          /* action == ENV_SET */
    const struct env_setting *setting; /* the line of the profile; NULL where it has none */
};

struct env_plan {
    struct env_plan_entry
        *entries; /* the profile's settings in its order, then what to take back */
    size_t count;
    char *mark;    /* new value of PROFILE_MARK_VARIABLE; NULL = unsetenv it */
    char *storage; /* private: texts that `old` and `name` point to */
};

/*
 * Decide. `env` is an environ array (NULL = empty). The plan points into the profile and into
 * `env`, so carry it out, or copy, before either goes: note that setenv may move environ's own
 * array but leaves the strings that a plan points to alone until they are replaced. 0, or -1 when
 * memory is out (the plan is then empty).
 */
int profile_env_plan(const struct profile *p, char *const *env, struct env_plan *out);
void env_plan_free(struct env_plan *plan);

/* Value of a variable in an environ array; NULL when it is not there. */
const char *env_lookup(char *const *env, const char *name);

#endif
