/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL would make of a profile, alone or together with the shell's variables and NCCL's own
 * files: contradictions, dangers, settings without effect. The rules are facts of NCCL (its sources
 * up to 2.30.7, public reports, own measurements), each told with its reason and what to do.
 */
#ifndef NCCLSHIM_PROFILE_CHECK_H
#define NCCLSHIM_PROFILE_CHECK_H

#include <stddef.h>

#include "include/ncclshim/log.h"
#include "shim/profile/profile.h"

/* X(symbol, text) from the least to the worst */
#define NCCLSHIM_SEVERITIES(X)                                                   \
    X(HINT, "hint")     /* good to know */                                       \
    X(WARN, "warn")     /* a setting without the effect that one would expect */ \
    X(DANGER, "danger") /* possible wrong data, hang or crash */                 \
    X(ERROR, "error")   /* NCCL would refuse it, or do what the profile does not say */

enum severity {
#define X(sym, text) SEVERITY_##sym,
    NCCLSHIM_SEVERITIES(X)
#undef X
};

struct finding {
    enum severity severity;
    bool allowed;  /* a danger that the profile accepts (allow_unsafe) */
    char *subject; /* the variable, key or rule; "" when it is about the file */
    char *section; /* label of the [comm NAME] or [tune NAME] section; "" = none */
    char *file;    /* "" when it stands in no file */
    int line;
    int origin; /* enum ncclshim_origin of the setting */
    char *reason;
    char *advice; /* what to do; "" where the reason says it */
};

struct findings {
    struct finding *list;
    size_t count;
    bool out_of_memory;
};

/* One variable as NCCL will get it. */
struct setting {
    const char *name;
    const char *value;
    int origin; /* enum ncclshim_origin */
    struct place place;
    bool profile_lost;               /* the profile asks otherwise; the user's value is kept */
    const struct env_setting *asked; /* the profile's line, NULL = it says nothing */
};

struct settings {
    struct setting *list;
    size_t count;
    struct env_plan *plan; /* private: what some of the list points into */
    char **names;          /* private */
    size_t names_count;
};

struct conf_files; /* conf.h */
struct env_plan;   /* apply.h */

/*
 * The merged environment: `env` (environ array; NULL = look at the profile alone), the profile,
 * then what NCCL's own files add (`conf`, may be NULL). Everything points into its sources. 0, or
 * -1 when memory is out. Free with settings_free.
 */
int settings_merge(const struct profile *p, char *const *env, const struct conf_files *conf,
                   struct settings *out);
void settings_free(struct settings *s);
const struct setting *settings_find(const struct settings *s, const char *name);

/*
 * Judge. `version` is the code of the NCCL it is for; 0 = not known, then what the profile's own
 * `nccl` key allows counts. Findings are added to `out` in the order of files and lines.
 */
void check_settings(const struct profile *p, const struct settings *s,
                    const struct conf_files *conf, int version, struct findings *out);

/*
 * The profile alone, as profile_load does: -1 with *e filled for the first error, or the first
 * danger that it does not allow.
 */
int check_alone(const struct profile *p, struct error *e);

const char *severity_name(enum severity s);

/* Add a finding; `place` may be NULL. */
void finding_add(struct findings *out, enum severity severity, const char *subject,
                 const char *section, const struct place *place, int origin, const char *advice,
                 const char *fmt, ...) __attribute__((format(printf, 8, 9)));
void findings_free(struct findings *f);

#endif
