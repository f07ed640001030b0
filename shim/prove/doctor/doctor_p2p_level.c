/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far NCCL goes with peer access (ncclTopoCheckP2p, graph/paths.cc, 2.18 to 2.30.7): as far as
 * NCCL_P2P_LEVEL says; unset, at any distance, but only to the last PCIe switch (PXB) with CPUs of
 * Intel and Zhaoxin and with ARM.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/prove/doctor/doctor_gpus.h"
#include "shim/show/json.h"

/* In the order of distance; NCCL's words, exact case. NVML tells no finer steps than these. */
static const struct {
    const char *word;
    int nvml; /* farthest common ancestor that is still within */
} levels[] = {{"LOC", -1}, {"NVL", 0},  {"NVB", 0},  {"C2C", 0},  {"PIX", 10},
              {"PXB", 20}, {"P2C", 20}, {"PXN", 20}, {"PHB", 40}, {"SYS", 50}};

static int reach_of(const char *value)
{
    static const int numbers[] = {-1, 10, 20, 40, 50};
    char *end;
    long n;

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (!strcmp(value, levels[i].word))
            return levels[i].nvml;
    n = strtol(value, &end, 0);
    if (end == value || n < 0)
        return -2;
    return numbers[n > 4 ? 4 : n];
}

static unsigned pairs_beyond(const struct doctor_gpus *g, int reach)
{
    unsigned n = 0;

    for (unsigned i = 0; i < g->count; i++)
        for (unsigned j = i + 1; j < g->count; j++) {
            const struct doctor_pair *p = &g->pair[i * g->count + j];
            if (p->read == DOCTOR_P2P_OK && p->write == DOCTOR_P2P_OK && p->ancestor > reach)
                n += reach < 0 || p->nvlink != DOCTOR_P2P_OK;
        }
    return n;
}

void doctor_cpu_vendor(const char *root, char buf[64])
{
    char path[DOCTOR_PATH],
        *text = doctor_slurp(doctor_path(path, root, "/proc/cpuinfo"), 16384, NULL);
    char *at = text ? strstr(text, "vendor_id") : NULL;

    buf[0] = '\0';
    if (at && (at = strchr(at, ':')))
        snprintf(buf, 64, "%.*s", (int)strcspn(at + 1 + strspn(at + 1, " "), "\n"),
                 at + 1 + strspn(at + 1, " "));
    else if (text && strstr(text, "CPU implementer"))
        snprintf(buf, 64, "ARM");
    free(text);
}

static void judge_unset(struct doctor_list *l, const struct doctor_gpus *g, const char *vendor)
{
    bool short_reach = !strcmp(vendor, "GenuineIntel") || !strcmp(vendor, "CentaurHauls") ||
                       strstr(vendor, "Shanghai") || !strcmp(vendor, "ARM");
    unsigned beyond = pairs_beyond(g, 20);
    struct doctor_finding *f;

    if (!*vendor || (beyond && !short_reach && strcmp(vendor, "AuthenticAMD"))) {
        doctor_add(l, DOCTOR_UNKNOWN, "p2p-level",
                   "NCCL_P2P_LEVEL is unset; how far NCCL goes with this CPU is not known");
    } else if (!short_reach || !beyond) {
        f = doctor_add(l, DOCTOR_OK, "p2p-level",
                       "NCCL_P2P_LEVEL is unset: NCCL uses peer access between all pairs");
        doctor_fact(f, "beyond", json_integer(0));
    } else {
        f = doctor_add(
            l, DOCTOR_WARN, "p2p-level",
            "NCCL_P2P_LEVEL is unset: with this CPU NCCL stops at PXB, %u pairs are further apart",
            beyond);
        doctor_advise(f, "find out whether peer access over the host bridge is faster here: "
                         "ncclshim ab -p none -p pcie-p2p -- COMMAND");
        doctor_fact(f, "beyond", json_integer(beyond));
    }
}

void doctor_p2p_level_judge(struct doctor_list *l, const struct doctor_gpus *g, const char *vendor,
                            const struct doctor_env *env)
{
    const char *off = doctor_getenv(env, "NCCL_P2P_DISABLE"),
               *level = doctor_getenv(env, "NCCL_P2P_LEVEL");
    struct doctor_finding *f;
    unsigned beyond;
    int reach;

    if (g->count < 2 || pairs_beyond(g, -1) == 0)
        return; /* no pair has peer access: nothing to reach */
    if (off && strtol(off, NULL, 0) == 1) {
        f = doctor_add(l, DOCTOR_WARN, "p2p-level",
                       "NCCL_P2P_DISABLE=1: NCCL makes no use of peer access, which works here");
        doctor_advise(
            f,
            "servers' own all-reduce kernels use peer access all the same: where it is off because "
            "of a hang, they must be turned off, too (docs/use/)");
        return;
    }
    if (!level) {
        judge_unset(l, g, vendor);
        return;
    }
    reach = reach_of(level);
    if (reach == -2) {
        f = doctor_add(l, DOCTOR_BAD, "p2p-level",
                       "NCCL_P2P_LEVEL=%s is no level: NCCL takes it for unset without a word",
                       level);
        doctor_advise(f, "levels are LOC, NVL, PIX, PXB, PHB and SYS, in capitals");
        return;
    }
    beyond = pairs_beyond(g, reach);
    if (beyond)
        f = doctor_add(l, DOCTOR_WARN, "p2p-level",
                       "NCCL_P2P_LEVEL=%s: %u pairs are further apart and go through host memory",
                       level, beyond);
    else
        f = doctor_add(l, DOCTOR_OK, "p2p-level", "NCCL_P2P_LEVEL=%s reaches all pairs", level);
    doctor_fact(f, "beyond", json_integer(beyond));
    doctor_fact(f, "value", json_text(level));
}
