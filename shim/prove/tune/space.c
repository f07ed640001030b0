/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/tune/space.h"

#include <stdlib.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/profile/apply.h"
#include "shim/profile/nccl_vars.h"

#define TUNER_SINCE 22100 /* rules go through the tuner interface; chunk through its v6 */
#define CHUNK_SINCE 23000
#define COMM_CONFIG_SINCE 21701

/*
 * No setting that can give wrong data, and none that others on the machine would feel. Values
 * beside NCCL's own, both ways where both make sense. NTHREADS below 256 is left out: LL then loses
 * much of its speed (64 threads: 28.6 us instead of 13.7 for 43,008 bytes through host memory, two
 * H200).
 */
static const char standard[] = "[env]\n"
                               "NCCL_P2P_LEVEL = SYS\n"
                               "NCCL_GRAPH_MIXING_SUPPORT = 0\n"
                               "NCCL_NTHREADS = 256 512\n"
                               "NCCL_BUFFSIZE = 1M 2M 8M 16M\n"
                               "NCCL_MIN_NCHANNELS = 4 8 16 32\n"
                               "NCCL_MAX_NCHANNELS = 2 4 8\n"
                               "[comm]\n"
                               "max_ctas = 4 16\n"
                               "[tune]\n"
                               "algorithm = tree ring nvls\n"
                               "protocol = ll ll128 simple\n"
                               "channels = 1 2 4 8 16 32\n"
                               "chunk = 32K 64K 128K 256K\n";

void space_default(struct tune_space *s)
{
    struct error e;

    space_parse(s, standard, "the default space", &e);
}

/* ---- what can't be tried here --------------------------------------------------------------- */

struct pruning {
    struct tune_space *s;
    const struct space_facts *f;
    void (*tell)(void *user, const char *line);
    void *user;
};

static void say(const struct pruning *p, const char *name, const char *why)
{
    char line[400];

    snprintf(line, sizeof(line), "%s was not tried: %s", name, why);
    p->tell(p->user, line);
}

/* NULL: it can be tried. "": not, and that goes without saying. */
static const char *why_not(const struct pruning *p, const struct space_setting *x, char *buf,
                           size_t size)
{
    const struct space_facts *f = p->f;
    const struct nccl_var *v = x->comm ? NULL : nccl_var_find(x->name);
    const char *off = env_lookup(f->env, "NCCL_P2P_DISABLE"),
               *set = x->comm ? NULL : env_lookup(f->env, x->name);

    if (v && f->version && !nccl_var_in(v, f->version))
        return "this NCCL does not have it";
    if (x->comm && f->version && f->version < COMM_CONFIG_SINCE)
        return "NCCL before 2.17.1 has no such field";
    if (set) {
        snprintf(
            buf, size,
            "it is set in the environment (%.60s), which goes before a profile; unset it to try it",
            set);
        return buf;
    }
    if (!strncmp(x->name, "NCCL_P2P_LEVEL", 14) && off && atoi(off) == 1)
        return "NCCL_P2P_DISABLE=1 is set in the environment";
    if (strcmp(x->name, "NCCL_GRAPH_MIXING_SUPPORT") != 0)
        return NULL;
    if (!f->graphs)
        return "";
    if (f->mixed && !f->waits)
        return "a communicator of this workload is used both eagerly and in graphs, and NCCL "
               "forbids an "
               "eager call while a graph that uses it still runs; where the server waits for its "
               "graphs "
               "first (--waits-for-graphs), it takes about 2 us off each captured call";
    return NULL;
}

void space_prune(struct tune_space *s, const struct space_facts *f,
                 void (*tell)(void *user, const char *line), void *user)
{
    struct pruning p = {s, f, tell, user};
    char buf[300];
    size_t kept = 0;

    for (size_t i = 0; i < s->setting_count; i++) {
        const char *why = why_not(&p, &s->settings[i], buf, sizeof(buf));
        if (why && *why)
            say(&p, s->settings[i].name, why);
        if (!why)
            s->settings[kept++] = s->settings[i];
    }
    s->setting_count = kept;
    if (s->chunk_count && f->version && f->version < CHUNK_SINCE)
        s->chunk_count = 0; /* a default that older versions lack is no news */
    if (f->version && f->version < TUNER_SINCE && (s->algos || s->protos || s->channel_count)) {
        s->algos = s->protos = 0;
        s->channel_count = 0;
        say(&p, "[tune]",
            "NCCL before 2.21 has no tuner interface that ncclshim speaks, so rules by size have "
            "no effect");
    }
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "NCCL_PROTO" : "NCCL_ALGO", *value = env_lookup(f->env, name);
        if (value)
            say(&p, i ? "any protocol beside NCCL_PROTO" : "any algorithm beside NCCL_ALGO",
                "that variable is set in the environment and goes before every rule; unset it");
    }
}

/* ---- what a budget allows ------------------------------------------------------------------- */

static size_t bits(uint32_t set)
{
    return (size_t)__builtin_popcount(set);
}

/* By counting what the search does (tune_search.h): it was 10 % off on the simulator. */
size_t space_cost(const struct tune_space *s)
{
    size_t values = 0, pairs = bits(s->algos ? s->algos : 1) * bits(s->protos ? s->protos : 1) + 1;

    for (size_t i = 0; i < s->setting_count; i++)
        values += s->settings[i].count;
    return 3 + values * 2 + s->setting_count + pairs * 4 + s->channel_count * 5 +
           s->chunk_count * 5 + 12;
}

/* First, second, third, ...; then the last: of 1 2 4 8 16 32 stay 2 8 32, of these 2 8. */
static size_t next_to_go(size_t had, size_t count)
{
    return had - count < count ? had - count : count - 1;
}

static void drop_setting(struct space_setting *x, size_t had)
{
    size_t at = next_to_go(had, x->count);

    memmove(x->values[at], x->values[at + 1], (x->count - at - 1) * sizeof(x->values[0]));
    x->count--;
}

bool space_thin(struct tune_space *s, size_t runs)
{
    const struct tune_space had = *s;
    bool thinned = false;

    while (space_cost(s) > runs) {
        struct space_setting *longest = NULL;
        for (size_t i = 0; i < s->setting_count; i++)
            if (s->settings[i].count > (longest ? longest->count : 1))
                longest = &s->settings[i];
        if (s->chunk_count > 1 && s->chunk_count >= (longest ? longest->count : 0)) {
            size_t at = next_to_go(had.chunk_count, s->chunk_count--);
            memmove(&s->chunks[at], &s->chunks[at + 1],
                    (s->chunk_count - at) * sizeof(s->chunks[0]));
        } else if (s->channel_count > 2 && s->channel_count >= (longest ? longest->count : 0)) {
            size_t at = next_to_go(had.channel_count, s->channel_count--);
            memmove(&s->channels[at], &s->channels[at + 1],
                    (s->channel_count - at) * sizeof(s->channels[0]));
        } else if (longest) {
            drop_setting(longest, had.settings[longest - s->settings].count);
        } else {
            return thinned;
        }
        thinned = true;
    }
    return thinned;
}
