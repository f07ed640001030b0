/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `tune` tries: settings with the values of each, and what rules by size may say. A file of it
 * looks like a profile whose values are lists (docs/tune.md):
 *
 *     [env]
 *     NCCL_BUFFSIZE = 2M 8M
 *     [comm]
 *     max_ctas = 4 16
 *     [tune]
 *     algorithm = ring tree
 *     protocol  = ll ll128 simple
 *     channels  = 1 2 4 8
 *     chunk     = 64K 128K
 *
 * Only safe values get in: each one is held against the checks that a profile must pass.
 */
#ifndef NCCLSHIM_PROVE_SPACE_H
#define NCCLSHIM_PROVE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "shim/base/error.h"

#define SPACE_SETTINGS 32
#define SPACE_VALUES 12
#define SPACE_TEXT 64

/* What must be made anew for a change to take effect. bench makes processes anew anyhow. */
enum space_needs { SPACE_PROCESS, SPACE_COMMUNICATOR };

struct space_setting {
    char name[SPACE_TEXT];
    bool comm; /* a field of [comm], else a variable of [env] */
    enum space_needs needs;
    char values[SPACE_VALUES][SPACE_TEXT];
    size_t count;
};

struct tune_space {
    struct space_setting settings[SPACE_SETTINGS];
    size_t setting_count;
    uint32_t algos, protos; /* bit n: rules may say it */
    int channels[SPACE_VALUES];
    size_t channel_count;
    uint64_t chunks[SPACE_VALUES];
    size_t chunk_count;
};

/* What `tune` searches when nobody says. */
void space_default(struct tune_space *s);
/* 0, or -1 with *e filled, file and line in it. */
int space_parse(struct tune_space *s, const char *text, const char *file, struct error *e);
int space_read(struct tune_space *s, const char *path, struct error *e);
/* Reads back to the same. */
void space_write(const struct tune_space *s, FILE *out);

/* What is known of where it is searched. */
struct space_facts {
    int version;      /* of NCCL, a code; 0 = unknown */
    bool mixed;       /* a communicator is used eagerly and in graphs */
    bool waits;       /* ... but never while a graph that uses it still runs: the user's word */
    bool graphs;      /* anything is captured at all */
    char *const *env; /* environ: what is set there goes before [env] */
};

/*
 * Take out what can't work or must not be tried here; `tell` gets a sentence for each (what a user
 * could do about it in it).
 */
void space_prune(struct tune_space *s, const struct space_facts *f,
                 void (*tell)(void *user, const char *line), void *user);

/*
 * Benches that a search of it will take, about; and leave out values, the longest lists first,
 * until that is no more than `runs` or nothing more can go. Whether anything went.
 */
size_t space_cost(const struct tune_space *s);
bool space_thin(struct tune_space *s, size_t runs);

#endif
