/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/preload/config.h"

#include <limits.h>
#include <string.h>

#define HEAD_BYTES 24u /* the oldest struct, 2.14 */

/* Size of ncclConfig_t by the version that introduced it (computed for LP64). */
static const struct {
    int since;
    unsigned bytes;
} sizes[] = {
    {21403, 24}, {21701, 40}, {21801, 48}, {22703, 72}, {22803, 80}, {22902, 88}, {23003, 96},
};
#define NEWEST_KNOWN 23007 /* what a library that is newer than our tables is told */

static unsigned size_of_version(int version)
{
    unsigned bytes = HEAD_BYTES;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (version >= sizes[i].since)
            bytes = sizes[i].bytes;
    return bytes;
}

static void add_section(struct config_wish *out, const struct comm_section *s)
{
    for (int f = 0; s && f < CONFIG_FIELD_COUNT; f++) {
        if (!(s->set & (1u << f)))
            continue;
        out->set |= 1u << f;
        out->number[f] = s->number[f];
        out->text[f] = s->text[f];
    }
}

void config_wish(const struct profile *p, const struct comm_facts *f, struct config_wish *out)
{
    memset(out, 0, sizeof(*out));
    add_section(out, profile_comm_base(p));
    add_section(out, profile_comm_match(p, f));
}

static void undefine(struct config_copy *c, unsigned offset, bool text)
{
    const int undef = INT_MIN;

    if (text)
        memset(c->bytes + offset, 0, sizeof(char *));
    else
        memcpy(c->bytes + offset, &undef, sizeof(undef));
}

/* Everything that `version` does not have is undefined, also what lies in old padding. */
static void undefine_newer(struct config_copy *c, int version)
{
    for (int f = 0; f < CONFIG_FIELD_COUNT; f++)
        if (config_fields[f].since > version)
            undefine(c, config_fields[f].offset, config_fields[f].text);
    if (NCCL_CONFIG_COMM_NAME_SINCE > version)
        undefine(c, NCCL_CONFIG_COMM_NAME_OFFSET, true);
}

void config_default(struct config_copy *out, int lib_version)
{
    int version = lib_version < NEWEST_KNOWN ? lib_version : NEWEST_KNOWN;

    memset(out, 0, sizeof(*out));
    out->head.size = size_of_version(version);
    out->head.magic = NCCL_CONFIG_MAGIC;
    out->head.version = (unsigned)version;
    out->head.blocking = INT_MIN;
    undefine_newer(out, 0);
    out->valid = true;
}

void config_copy_of(struct config_copy *out, const void *callers)
{
    const struct nccl_config_head *head = callers;

    memset(out, 0, sizeof(*out));
    /* Size first: with a wrong magic not even the rest of the head is sure to be there. */
    if (head->size < HEAD_BYTES || head->size > sizeof(out->bytes) ||
        head->magic != NCCL_CONFIG_MAGIC)
        return;
    memcpy(out->bytes, callers, head->size);
    out->valid = true;
}

static bool has_room(const struct config_copy *c, enum config_field f)
{
    size_t width = config_fields[f].text ? sizeof(char *) : sizeof(int);

    return (int)c->head.version >= config_fields[f].since && config_fields[f].offset + width <= c->head.size;
}

/* Make the struct one of `version`, at least as large as that version has it. */
static void raise(struct config_copy *c, int version)
{
    unsigned size = size_of_version(version);

    undefine_newer(c, (int)c->head.version);
    c->head.version = (unsigned)version;
    if (c->head.size < size)
        c->head.size = size;
}

static void put(struct config_copy *c, const struct config_wish *wish, enum config_field f)
{
    if (config_fields[f].text)
        memcpy(c->bytes + config_fields[f].offset, &wish->text[f], sizeof(char *));
    else
        memcpy(c->bytes + config_fields[f].offset, &wish->number[f], sizeof(int));
}

uint32_t config_apply(struct config_copy *c, const struct config_wish *wish, int lib_version)
{
    int newest = lib_version < NEWEST_KNOWN ? lib_version : NEWEST_KNOWN;
    uint32_t missing = 0;

    if (!c->valid)
        return wish->set;
    for (int f = 0; f < CONFIG_FIELD_COUNT; f++) {
        if (!(wish->set & (1u << f)))
            continue;
        if (config_fields[f].since > newest) {
            missing |= 1u << f;
            continue;
        }
        if (!has_room(c, (enum config_field)f))
            raise(c, newest);
        put(c, wish, (enum config_field)f);
    }
    if (wish->set & (1u << CONFIG_MIN_CTAS) & ~missing &&
        config_number(c, CONFIG_MAX_CTAS) == INT_MIN) {
        const int most = 64; /* NCCL's own default */
        memcpy(c->bytes + config_fields[CONFIG_MAX_CTAS].offset, &most, sizeof(most));
    }
    if (wish->set & (1u << CONFIG_MAX_CTAS) & ~missing &&
        config_number(c, CONFIG_MIN_CTAS) > config_number(c, CONFIG_MAX_CTAS)) {
        /* The program's own minimum is above: the profile's maximum is what was asked of us. */
        int most = config_number(c, CONFIG_MAX_CTAS);
        memcpy(c->bytes + config_fields[CONFIG_MIN_CTAS].offset, &most, sizeof(most));
    }
    return missing;
}

int config_number(const struct config_copy *c, enum config_field field)
{
    int n = INT_MIN;

    if (c->valid && !config_fields[field].text && has_room(c, field))
        memcpy(&n, c->bytes + config_fields[field].offset, sizeof(n));
    return n;
}

const char *config_comm_name(const struct config_copy *c)
{
    const char *name = NULL;

    if (c->valid && (int)c->head.version >= NCCL_CONFIG_COMM_NAME_SINCE &&
        c->head.size >= NCCL_CONFIG_COMM_NAME_OFFSET + sizeof(name))
        memcpy(&name, c->bytes + NCCL_CONFIG_COMM_NAME_OFFSET, sizeof(name));
    return name;
}

int config_blocking(const struct config_copy *c)
{
    return c->valid ? c->head.blocking : INT_MIN;
}
