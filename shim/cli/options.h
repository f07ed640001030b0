/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How every verb reads its options: from one table a verb, so that the same mistake gets the same
 * sentence everywhere. --help and -h belong to all of them and stand in no table.
 */
#ifndef NCCLSHIM_CLI_OPTIONS_H
#define NCCLSHIM_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/error.h"

/* What an option takes, and the type of what lies at its place. */
enum option_kind {
    OPTION_TEXT,    /* const char *: the value as it stands in argv */
    OPTION_NUMBER,  /* int or unsigned: a whole number from `least` to `most` */
    OPTION_PERCENT, /* double: "2", "0.5 %" as a share */
    OPTION_TIME,    /* uint64_t: "90s", "10m", "2h", "1d" in nanoseconds, more than 0 */
    OPTION_WORD,    /* bool, set by the one word that it knows */
    OPTION_CALL,    /* `take` is called with the value and the place */
    /* without a value */
    OPTION_FLAG,    /* bool: set */
    OPTION_CLEAR,   /* bool: cleared */
    OPTION_SET,     /* int or enum: becomes `least`; the last one counts */
    OPTION_ONE_OF,  /* the same, but those with the same place exclude each other */
};

struct option_row {
    const char *name; /* without --; NULL ends the table */
    char letter;      /* 0 = none */
    enum option_kind kind;
    size_t at;        /* offsetof its place in the verb's request */
    long least, most;
    const char *word;
    int (*take)(void *place, const char *value, struct error *e); /* 0, or -1 with *e filled */
};

struct options {
    const char *help;
    const struct option_row *rows; /* at most OPTIONS_MAX */
    bool command; /* the first argument ends the options: what follows is somebody else's command */
};
#define OPTIONS_MAX 40

/*
 * Read argv into *request. Returns -1 when all is well: argv[optind] is the first argument, and bit
 * i of *given (NULL: not asked) tells whether row i was there. Else the verb is done, and this is
 * its exit code: 0 after --help, 2 after an error, which was told.
 */
int options_read(int argc, char **argv, const struct options *o, void *request, uint64_t *given);

/* For OPTION_CALL: a value that is not in `names` (NULL-terminated), with the nearest that is, or
 * all of them. Returns -1. */
int unknown_name(const char *option, const char *value, const char *const *names, struct error *e);

/* No argument: 2 after "'X' is no option; INSTEAD", or -1, as above. */
int options_none(int argc, char **argv, const char *instead);

/* At most one argument, which may be missing: the run, the folder. -1 and *argument, or 2, as
 * above. `behind`: what to say of a second one, "" = nothing more. */
int options_argument(int argc, char **argv, const char *what, const char *behind,
                     const char **argument);

#endif
