/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the profile room: one file on its way to a struct profile. Each section's keys are read in
 * a file of its own (section_*.c); load.c puts them together.
 */
#ifndef NCCLSHIM_PROFILE_READER_H
#define NCCLSHIM_PROFILE_READER_H

#include "shim/profile/profile.h"
#include "shim/profile/value.h"

/* X(symbol, header, may have a label) */
#define NCCLSHIM_PROFILE_SECTIONS(X)   \
    X(PROFILE, "profile", false)       \
    X(ENV, "env", false)               \
    X(OVERRIDE, "env override", false) \
    X(COMM, "comm", true)              \
    X(TUNE, "tune", true)              \
    X(LOG, "log", false)

enum section_kind {
#define X(sym, ...) SECTION_##sym,
    NCCLSHIM_PROFILE_SECTIONS(X)
#undef X
        SECTION_UNKNOWN
};

/* Called for each error when the reader is to go on behind it. */
typedef void profile_report(void *user, const struct error *e);

struct seen_name {
    int section; /* names of one section must differ; 0 = both [env]s, -1 = the headers */
    char *name;
    int line;
};

struct reader {
    struct profile *p;
    const char *file; /* owned by p */
    struct error *e;  /* the first error */
    int errors;
    profile_report *report; /* NULL: the first error ends it */
    void *user;

    enum section_kind kind;
    int section; /* counts the headers from 1 */
    int section_line;
    char label[64];             /* NAME of [comm NAME], [tune NAME] */
    int conditions;             /* lines of this section that are conditions */
    struct comm_condition when; /* of the [tune NAME] that is being read */
    size_t tune_first;          /* index of its first rule */

    char *inherit;
    int inherit_line;
    struct seen_name *seen;
    size_t seen_count;
};

/*
 * Note an error of this file. Returns 0 when reading goes on (a report takes it), -1 when not:
 * `return reader_error(...)` is right in both cases.
 */
int reader_error(struct reader *r, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int reader_no_memory(struct reader *r);

/*
 * Read the sections of one file into r->p; its bytes end with a zero byte. 0, or -1 when there was
 * any error (told through reader_error).
 */
int reader_run(struct reader *r, const char *bytes, size_t size);
void reader_free(struct reader *r); /* not r->p */

/* Clean `raw` (value_clean). 0; 1 when it was no value (told already, go on); -1 to stop. */
int reader_clean(struct reader *r, const char *key, const char *raw, bool comments, int line,
                 struct clean_value *out);

/* The keys of each section: 0, or -1 to stop. */
int section_profile_key(struct reader *r, const char *key, const char *raw, int line);
int section_env_key(struct reader *r, const char *key, const char *raw, int line);
int section_comm_start(struct reader *r, int line);
int section_comm_key(struct reader *r, const char *key, const char *raw, int line);
int section_tune_start(struct reader *r, int line);
int section_tune_key(struct reader *r, const char *key, const char *raw, int line);
int section_log_key(struct reader *r, const char *key, const char *raw, int line);

/* At the end of a section, or of the file. */
void section_comm_end(struct reader *r);
int section_tune_end(struct reader *r);

/* When all is inherited that is to be: conditions of the named sections. 0 or -1. */
int section_comm_finish(struct reader *r);

/* At the end of the file, when allow_unknown is known: names and values of all variables. */
int section_env_finish(struct reader *r);

/* A variable with its value as written, not yet judged, at the end of a list. */
int env_setting_add(struct reader *r, struct env_setting **list, size_t *count, const char *key,
                    const char *raw, int line);

/* `ranks`, `nodes`, `index`, `name`, `parent`: 1 when `key` is none of these. */
int condition_key(struct reader *r, struct comm_condition *c, const char *key, const char *raw,
                  int line);
void condition_any(struct comm_condition *c);
int condition_copy(struct comm_condition *to, const struct comm_condition *from);
void condition_free(struct comm_condition *c);

/* Is everything that `b` holds for also covered by `a`? (May say no where it is so.) */
bool condition_covers(const struct comm_condition *a, const struct comm_condition *b);

/*
 * The rule before `rule` (in its profile) that leaves nothing for it; NULL when it is of use. When
 * several do so together, the first of them.
 */
const struct tune_rule *tune_rule_shadowed(const struct profile *p, const struct tune_rule *rule);

/* Let `p` inherit: what it does not say itself comes from `base`, which loses it. 0 or -1. */
int profile_merge(struct profile *p, struct profile *base);

/* Does a named section before `s` (or of all, when s is none of p's) take all that s could? */
const struct comm_section *comm_section_covered(const struct profile *p,
                                                const struct comm_section *s);

struct profile *profile_new(void);
void env_setting_free(struct env_setting *s);
void comm_section_free(struct comm_section *s);
void tune_rule_free(struct tune_rule *t);

#endif
