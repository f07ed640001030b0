/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclConfig_t, merged with what [comm] sections ask for, without ever touching the caller's
 * object, and without reading or writing past the size that it states. The rules are NCCL's
 * (parseCommConfig in init.cc, 2.14.3 to 2.30.7):
 *  - NCCL copies min(caller's size, its own size) bytes over defaults, then resets the fields that
 *    are newer than the caller's `version`. So a newer field needs size and version raised, and
 *    everything between must first be set to "undefined": old padding would become live values.
 *  - min_ctas without max_ctas fails NCCL's own check (undefined is INT_MIN): both are set.
 *  - NULL at init means defaults; at split, shrink and grow it means "as the parent". A config that
 *    replaces such a NULL is built from the parent's, or the child would lose what it inherits.
 */
#ifndef NCCLSHIM_PRELOAD_CONFIG_H
#define NCCLSHIM_PRELOAD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/preload/nccl_abi.h"
#include "shim/profile/profile.h"

#define CONFIG_COPY_BYTES 512 /* a caller's struct larger than this is handed on as it is */

struct config_copy {
    union {
        struct nccl_config_head head;
        unsigned char bytes[CONFIG_COPY_BYTES];
    };
    bool valid;
};

/* What the sections say about one communicator: the named one before [comm]. */
struct config_wish {
    uint32_t set;
    int number[CONFIG_FIELD_COUNT];
    const char *text[CONFIG_FIELD_COUNT];
};
void config_wish(const struct profile *p, const struct comm_facts *f, struct config_wish *out);

/*
 * A default config of a library's version, or a private copy of the caller's. valid = false when
 * the caller's has no magic, an impossible size, or one that is too large to copy.
 */
void config_default(struct config_copy *out, int lib_version);
void config_copy_of(struct config_copy *out, const void *callers);

/*
 * Put the wish into `c`, for a library of this version. Returns the bits of the fields that the
 * library does not have (0 = all given); `c` is left as it was when nothing could be given.
 */
uint32_t config_apply(struct config_copy *c, const struct config_wish *wish, int lib_version);

/* A field's value in a copy; NCCLSHIM_UNDEF (INT_MIN) when it is not there. */
int config_number(const struct config_copy *c, enum config_field field);
/* The name the program gave the communicator; NULL when none. */
const char *config_comm_name(const struct config_copy *c);
/* 0 when the program asked for a non-blocking communicator. */
int config_blocking(const struct config_copy *c);

#endif
