/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL makes of its environment: every NCCL_ variable that a release from 2.8.3 to 2.32.3
 * reads, with its type, its range, when it is read, and what becomes of a bad value. Sources:
 * NCCL's own sources up to 2.30.7 (a test compares the names with the strings of the libraries at
 * hand); what came after is known from the strings of 2.31.2 and 2.32.3 alone, and has type ANY.
 *
 * NCCL itself says nothing about an unknown name, a word where it wants a number (read as 0), or
 * text behind the digits ("8M" is 8). This table is there so that we can.
 */
#ifndef NCCLSHIM_PROFILE_NCCL_VARS_H
#define NCCLSHIM_PROFILE_NCCL_VARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(symbol, how NCCL reads it) */
#define NCCLSHIM_VAR_TYPES(X)                                                      \
    X(BOOL, "a number")                                                            \
    X(INT, "a number")                                                             \
    X(BYTES, "a number of bytes; no K, M, G")                                      \
    X(WORD, "a word, letters in any case")                                         \
    X(LEVEL, "LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS, or an old number") \
    X(ALGO, "[operation:][^]algorithm,... joined by ;")                            \
    X(PROTO, "[operation:][^]protocol,... joined by ;")                            \
    X(SUBSYS, "[^]subsystem,...")                                                  \
    X(CTA_POLICY, "a number or words joined by |")                                 \
    X(NETDEVS, "AUTO, ALL or MAX:n")                                               \
    X(THRESHOLDS, "up to six numbers with blanks between them")                    \
    X(LIST, "text with commas, as it is")                                          \
    X(PATH, "text, as it is")                                                      \
    X(PLUGIN, "none, a path, a library's name, or NAME of libnccl-...-NAME.so")    \
    X(TEXT, "text, as it is")                                                      \
    X(ANY, "not known")

/* X(symbol, when NCCL reads it, what a change between two communicators does) */
#define NCCLSHIM_VAR_CLASSES(X)                                                   \
    X(RAW, "once, before everything", "nothing")                                  \
    X(DEBUG, "at the first message", "nothing")                                   \
    X(PARAM, "once, at first use", "nothing; from 2.29.7 with NCCL_NO_CACHE")     \
    X(ONCE, "once, at first use", "nothing")                                      \
    X(COMM, "by each communicator", "holds for communicators made afterwards")    \
    X(LAST, "by each communicator", "holds for all communicators of the process") \
    X(LOADED, "until it is loaded", "nothing once a load succeeded or failed")    \
    X(EACH, "at each use", "holds at once")

enum nccl_var_type {
#define X(sym, ...) VAR_##sym,
    NCCLSHIM_VAR_TYPES(X)
#undef X
};

enum nccl_var_class {
#define X(sym, ...) READ_##sym,
    NCCLSHIM_VAR_CLASSES(X)
#undef X
};

#define NCCL_VERSION_NOW 0        /* `last`: the newest known release still has it */
#define NCCL_VERSION_NEWEST 23203 /* newest release whose names are known */
#define NCCL_VAR_NO_AUTO INT64_MIN

struct nccl_var {
    const char *name; /* with NCCL_ */
    enum nccl_var_type type;
    enum nccl_var_class when;
    int first;     /* version code of the first release seen with it; 0 = 2.8.3 or older */
    int last;      /* of the last release that has it; NCCL_VERSION_NOW */
    int64_t least; /* BOOL, INT, BYTES: inclusive range that means what it says */
    int64_t most;
    int64_t automatic;    /* value outside the range that means NCCL's own choice */
    const char *standard; /* default, in words where it is no plain value; "" = not known */
    const char *words;    /* WORD: the words, joined by | */
    const char *note;     /* what NCCL makes of other values; "" = as its type says */
};

/* The variable of a name (exact), or NULL. */
const struct nccl_var *nccl_var_find(const char *name);

/* The n-th variable in the order of the table, NULL past the end. */
const struct nccl_var *nccl_var_at(size_t n);

/* Known name nearest to `name`, or NULL when none is near enough to be meant. */
const char *nccl_var_nearest(const char *name);

/* Does a release have this variable? Versions are codes (22809). */
bool nccl_var_in(const struct nccl_var *v, int version);

/* May it stand in a [comm] section: does NCCL ask for it anew for each communicator? */
bool nccl_var_per_comm(const struct nccl_var *v);

const char *nccl_var_when_text(const struct nccl_var *v);

/*
 * "0 to 64, or -2 for NCCL's choice", the words, or the form. Returns buf.
 */
const char *nccl_var_range_text(const struct nccl_var *v, char *buf, size_t size);

#endif
