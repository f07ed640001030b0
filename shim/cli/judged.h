/* SPDX-License-Identifier: Apache-2.0 */
/* A profile with all that `check` has to say of it: what `show` and `check` share. */
#ifndef NCCLSHIM_CLI_JUDGED_H
#define NCCLSHIM_CLI_JUDGED_H

#include <jansson.h>

#include "shim/profile/check.h"
#include "shim/profile/conf.h"

struct judged {
    struct profile *p; /* NULL: it could not be read, the findings say why */
    struct settings settings;
    struct conf_files conf;
    struct findings findings;
};

/*
 * Read and judge. `env`: together with the shell's variables and NCCL's own files. 0; or -1 with *e
 * filled when there is no such profile at all. Free with judged_free in both cases.
 */
int judged_load(const char *name, bool env, int version, struct judged *out, struct error *e);
void judged_free(struct judged *j);

/* Errors, and dangers that the profile does not allow. */
size_t judged_bad(const struct judged *j);
size_t judged_count(const struct judged *j, enum severity severity);

/*
 * OPTION_CALL of --nccl, on an int that becomes a version code: of a version (2.28.9; 2.28 is its
 * last release), or of the library at that path, whose own strings tell.
 */
int take_nccl(void *version, const char *value, struct error *e);

json_t *finding_json(const struct finding *f);
json_t *place_json(const struct place *place, json_t *into);

#endif
