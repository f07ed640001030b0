/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile: the settings of one INI file (and those it inherits from), read and checked as a
 * whole. Reading is all or nothing: a profile_load that fails leaves nothing behind.
 *
 * Ownership: a profile owns all its strings; profile_free frees them. After loading it is never
 * written again and may be read from any thread. The shared object loads one in its constructor
 * and keeps it for the life of the process.
 */
#ifndef NCCLSHIM_PROFILE_H
#define NCCLSHIM_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/error.h"
#include "shim/profile/config_fields.h"

/* Where a setting stands: for messages, `show` and `check`. file is owned by the profile. */
struct place {
    const char *file;
    int line;
};

/* One variable of [env] or [env override]. */
struct env_setting {
    char *name;
    char *value; /* as NCCL will see it: outer quotes gone, size suffixes turned into bytes */
    char *raw;   /* as written */
    bool override;
    struct place place;
};

/* Conditions of a [comm NAME] section or a [tune] rule; all that are given must hold. */
struct comm_condition {
    int ranks_min, ranks_max; /* inclusive; 0, INT_MAX = any */
    int nodes_min, nodes_max;
    int index_min, index_max; /* n-th communicator of the process, from 0 */
    char *name;               /* fnmatch pattern of the communicator's name; NULL = any */
    char *parent;             /* fnmatch pattern of its parent's name; NULL = any; "" = no parent */
};

struct comm_section {
    char *label; /* NAME of [comm NAME]; "" for [comm] */
    struct comm_condition when;
    bool conditions;                     /* some condition is written, be it one that always holds */
    uint32_t set;                        /* bit n: enum config_field n is given */
    int number[CONFIG_FIELD_COUNT];      /* INT fields */
    char *text[CONFIG_FIELD_COUNT];      /* STR fields */
    struct place places[CONFIG_FIELD_COUNT];
    struct env_setting *env; /* per-communicator NCCL_ variables; `override` has no meaning here */
    size_t env_count;
    struct place place;
};

/* One [tune] rule, in the order of the file; the first that covers a call wins. */
struct tune_rule {
    int op;                  /* NCCLSHIM_OPS number */
    uint64_t bytes_min;      /* inclusive */
    uint64_t bytes_max;      /* inclusive; UINT64_MAX = no end */
    int algo, proto;         /* table numbers; -1 = NCCL's choice */
    int channels;            /* 0 = NCCL's choice */
    uint64_t chunk_bytes;    /* 0 = NCCL's choice (tuner v6) */
    struct comm_condition when;
    char *label; /* NAME of [tune NAME]; "" for [tune] */
    char *text;  /* the rule as written */
    struct place place;
};

/* Keys of [log]; bit n of log_options.set. */
enum log_key {
    LOG_KEY_SAMPLE,
    LOG_KEY_CAPACITY,
    LOG_KEY_MIN_BYTES,
    LOG_KEY_EAGER,
    LOG_KEY_CAPTURED,
    LOG_KEY_OPS,
    LOG_KEY_COUNT
};
#define LOG_SET_SAMPLE (1u << LOG_KEY_SAMPLE)
#define LOG_SET_CAPACITY (1u << LOG_KEY_CAPACITY)
#define LOG_SET_MIN_BYTES (1u << LOG_KEY_MIN_BYTES)
#define LOG_SET_EAGER (1u << LOG_KEY_EAGER)
#define LOG_SET_CAPTURED (1u << LOG_KEY_CAPTURED)
#define LOG_SET_OPS (1u << LOG_KEY_OPS)

struct log_options {
    uint32_t sample;    /* stamp one call in N; 1 = every call */
    uint64_t capacity;  /* records in the ring of one GPU, a power of two */
    uint64_t min_bytes; /* smaller calls are counted, not timed */
    bool eager, captured; /* which calls are stamped */
    uint32_t ops;         /* bit n: NCCLSHIM_OPS n is stamped */
    uint32_t set;         /* bit per key that the profile gave (LOG_SET_...), for `show` */
};

#define LOG_SAMPLE_DEFAULT 1u
#define LOG_CAPACITY_DEFAULT (512u * 1024u)

struct version_range {
    int least; /* inclusive version code (22809); 0 = none */
    int most;  /* inclusive; INT_MAX = none */
    char *text;
};

struct profile {
    char *name;        /* "none", or the base name without .ini */
    char *path;        /* "" for none */
    char *description; /* "" when it has none */
    char **inherits;   /* names, nearest first; inherits_count of them */
    size_t inherits_count;
    struct version_range nccl;
    bool allow_unsafe;
    struct env_setting *env;
    size_t env_count;
    struct comm_section *comm; /* [comm], if there is one, is the first; then the named, in order */
    size_t comm_count;
    struct tune_rule *tune;
    size_t tune_count;
    struct log_options log;
    uint64_t digest; /* FNV-1a 64 of the bytes of the file and of all it inherits from */

    /* For messages, `show` and `check`. */
    char **allow_unknown; /* names that [env] may set though this table of variables lacks them */
    size_t allow_unknown_count;
    struct place nccl_place;
    struct place log_places[LOG_KEY_COUNT];
    char **files; /* all that were read, this one's first; what the places point to */
    size_t files_count;
};

/*
 * Load a profile by name (looked up as profile_find does), by path (it has a '/' or ends in .ini),
 * or `none` / NULL / "" (log only: a profile with nothing set). 0, or -1 with *e filled.
 */
int profile_load(const char *name_or_path, struct profile **out, struct error *e);
void profile_free(struct profile *p);

/*
 * The same from bytes in memory, which `file` names in messages; what they inherit from is looked
 * up as ever. bytes[size] must be readable and 0.
 */
int profile_parse(const char *bytes, size_t size, const char *file, struct profile **out,
                  struct error *e);

#define PROFILE_INHERIT_MAX 8 /* most profiles that one profile inherits from */

/*
 * Folders in which names are looked up, in order: NCCLSHIM_PROFILE_PATH (colon list),
 * $XDG_CONFIG_HOME/ncclshim/profiles (or ~/.config), /etc/ncclshim/profiles, the installed share
 * folder, `profiles/` beside the build. NULL-terminated array of malloc'ed strings; free each and
 * the array (profile_path_free). NULL only when memory is out.
 */
char **profile_path(void);
void profile_path_free(char **dirs);

/* Path of a named profile in buf. 0, or -1 with *e filled (it lists the folders and the nearest name). */
int profile_find(const char *name, char *buf, size_t size, struct error *e);

/* One profile that a name can mean. */
struct profile_entry {
    char *name;
    char *path;
    bool shadowed; /* a folder earlier in the path has one of this name */
};

/*
 * All profiles of the path, in its order and by name within a folder. 0, or -1 when memory is out.
 * Free with profile_list_free.
 */
int profile_list(struct profile_entry **out, size_t *count);
void profile_list_free(struct profile_entry *list, size_t count);

/* What is known of a communicator when its settings are chosen. */
struct comm_facts {
    int ranks;
    int nodes;          /* -1 = not known yet: a condition on it then does not hold */
    int index;          /* n-th communicator of this process, from 0 */
    const char *name;   /* "" when it has none */
    const char *parent; /* parent's name; NULL when it has no parent */
};

bool condition_holds(const struct comm_condition *c, const struct comm_facts *f);

/*
 * The first named section whose conditions all hold; NULL when none does. The nameless [comm]
 * section is profile_comm_base. What the named one gives goes before what [comm] gives.
 */
const struct comm_section *profile_comm_match(const struct profile *p, const struct comm_facts *f);
const struct comm_section *profile_comm_base(const struct profile *p);

/* The rule that covers a call, or NULL: the size is then left exactly as NCCL would have it. */
const struct tune_rule *profile_tune_match(const struct profile *p, int op, uint64_t bytes,
                                           const struct comm_facts *f);

#endif
