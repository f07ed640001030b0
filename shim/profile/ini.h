/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inih with line numbers and section events, over bytes that source_check has passed. Whatever
 * inih would do by itself with comments behind values, with indented lines and with keys without a
 * value is off: the sections' own readers decide that.
 */
#ifndef NCCLSHIM_PROFILE_INI_H
#define NCCLSHIM_PROFILE_INI_H

#include <stddef.h>

struct ini_events {
    /* `[name]`, blanks around the name gone. Non-zero ends the walk. */
    int (*section)(void *user, const char *name, int line);
    /* `key = value`, blanks around both gone, the value otherwise as written. Non-zero ends. */
    int (*key)(void *user, const char *key, const char *value, int line);
    void *user;
};

/* 0, or -1 when an event ended it or memory is out. */
int ini_walk(const char *bytes, size_t size, const struct ini_events *events);

#endif
