/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the doctor found: a list of findings, each a sentence with a level, a topic for programs,
 * what to do about it, and the same in facts for JSON.
 */
#ifndef NCCLSHIM_PROVE_DOCTOR_LIST_H
#define NCCLSHIM_PROVE_DOCTOR_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

enum doctor_level {
    DOCTOR_OK,
    DOCTOR_UNKNOWN, /* can't be seen from here; nothing is wrong with that alone */
    DOCTOR_WARN,    /* costs time, hides something, or will be in the way */
    DOCTOR_BAD,     /* what was asked for does not work: exit code 1 */
};

struct doctor_finding {
    enum doctor_level level;
    const char *topic; /* stable word of docs/doctor.md; static */
    char *text;        /* not made printable yet: names of files and programs stand in it */
    char *advice;      /* NULL = none */
    json_t *facts;     /* object; NULL = none. Strings in it are made printable */
};

struct doctor_list {
    struct doctor_finding *list;
    size_t count;
    bool broken; /* memory ran out: something is missing */
};

/* Add one; NULL when memory is out (and the list is marked broken). Valid until the next is added.
 */
struct doctor_finding *doctor_add(struct doctor_list *l, enum doctor_level level, const char *topic,
                                  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* f may be NULL in both. doctor_fact takes the value over, also then. */
void doctor_advise(struct doctor_finding *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_fact(struct doctor_finding *f, const char *key, json_t *value);

size_t doctor_count(const struct doctor_list *l, enum doctor_level level);
const char *doctor_level_name(enum doctor_level level);
void doctor_list_free(struct doctor_list *l);

/* A sentence that grows; what does not fit is cut. Start with {0}. */
struct doctor_line {
    char text[2048];
    size_t n;
};
void doctor_say(struct doctor_line *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with a separator before it where something stands already. */
void doctor_say_next(struct doctor_line *s, const char *between, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
