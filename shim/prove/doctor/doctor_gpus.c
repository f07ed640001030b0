/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/doctor/doctor_gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/show/json.h"

/* ---- which ---------------------------------------------------------------------------------- */

static json_t *gpu_json(const struct doctor_gpu *g)
{
    return json_pack("{s:o,s:o,s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "name", json_text(g->name), "bus",
                     json_text(g->bus), "pcie_gen", g->gen, "pcie_gen_max", g->gen_max,
                     "pcie_gen_gpu", g->gen_gpu, "pcie_width", g->width, "pcie_width_max",
                     g->width_max, "mig", g->mig, "processes", g->processes);
}

static void judge_names(struct doctor_list *l, const struct doctor_gpus *g)
{
    json_t *all = json_array();
    struct doctor_line s = {0};
    struct doctor_finding *f;
    unsigned mig = 0;

    for (unsigned i = 0; i < g->count; i++) {
        unsigned same = 0;
        bool seen = false;
        for (unsigned j = 0; j < g->count; j++)
            if (!strcmp(g->gpu[i].name, g->gpu[j].name)) {
                same++;
                seen |= j < i;
            }
        if (!seen)
            doctor_say_next(&s, ", ", "%u x %s", same, g->gpu[i].name);
        mig += g->gpu[i].mig == 1;
        json_array_append_new(all, gpu_json(&g->gpu[i]));
    }
    f = doctor_add(l, DOCTOR_OK, "gpus", "%s%s%s", s.text, g->driver[0] ? ", driver " : "",
                   g->driver);
    doctor_fact(f, "driver", json_text(g->driver));
    doctor_fact(f, "list", all);
    if (mig) {
        f = doctor_add(l, DOCTOR_WARN, "mig",
                       "%u of %u GPUs are split by MIG: no peer access between parts", mig,
                       g->count);
        doctor_advise(f, "nvidia-smi -mig 0 (as root, nothing running) makes whole GPUs of them");
    }
}

/* ---- peer access ---------------------------------------------------------------------------- */

static const char *p2p_reason(int status)
{
    switch (status) {
    case 1:
        return "the chipset does not support it";
    case 2:
        return "the GPU, or its driver, does not support it";
    case 3:
        return "the I/O hub between them does not support it";
    case 4:
        return "a registry key of the driver turns it off";
    case 5:
        return "it is not supported";
    default:
        return "NVML gives no reason";
    }
}

static bool works(const struct doctor_pair *p)
{
    return p->read == DOCTOR_P2P_OK && p->write == DOCTOR_P2P_OK;
}

struct pair_sums {
    unsigned all, told, working, nvlink, near, switches, bridge, sockets;
    int reason;
};

static void sum_pairs(const struct doctor_gpus *g, struct pair_sums *n)
{
    memset(n, 0, sizeof(*n));
    for (unsigned i = 0; i < g->count; i++)
        for (unsigned j = i + 1; j < g->count; j++) {
            const struct doctor_pair *p = &g->pair[i * g->count + j];
            n->all++;
            n->told += p->read >= 0 && p->write >= 0;
            n->working += works(p);
            if (!works(p) && !n->reason)
                n->reason = p->read > 0 ? p->read : p->write;
            if (p->nvlink == DOCTOR_P2P_OK)
                n->nvlink++;
            else if (p->ancestor >= 0 && p->ancestor <= 10)
                n->near++;
            else if (p->ancestor == 20)
                n->switches++;
            else if (p->ancestor == 30 || p->ancestor == 40)
                n->bridge++;
            else if (p->ancestor == 50)
                n->sockets++;
        }
}

static void judge_access(struct doctor_list *l, const struct doctor_gpus *g,
                         const struct pair_sums *n)
{
    struct doctor_finding *f;

    if (n->told == 0)
        f = doctor_add(l, DOCTOR_UNKNOWN, "p2p", "NVML does not tell whether peer access works");
    else if (n->working == n->all)
        f = doctor_add(l, DOCTOR_OK, "p2p",
                       "peer access works between all %u GPUs (%u of %u pairs)", g->count,
                       n->working, n->all);
    else {
        f = doctor_add(l, DOCTOR_WARN, "p2p",
                       "peer access works between %u of %u pairs of GPUs: %s", n->working, n->all,
                       p2p_reason(n->reason));
        doctor_advise(
            f, "NCCL goes through host memory between the others, which costs time at every size; "
               "`nvidia-smi topo -p2p rw` shows which pairs");
    }
    doctor_fact(f, "pairs", json_integer(n->all));
    doctor_fact(f, "working", json_integer(n->working));
}

static void judge_links(struct doctor_list *l, const struct pair_sums *n)
{
    struct doctor_line s = {0};
    struct doctor_finding *f;

    if (n->nvlink)
        doctor_say_next(&s, ", ", "%u over NVLink", n->nvlink);
    if (n->near)
        doctor_say_next(&s, ", ", "%u through one PCIe switch", n->near);
    if (n->switches)
        doctor_say_next(&s, ", ", "%u through several PCIe switches", n->switches);
    if (n->bridge)
        doctor_say_next(&s, ", ", "%u over the host bridges of one CPU", n->bridge);
    if (n->sockets)
        doctor_say_next(&s, ", ", "%u between CPUs", n->sockets);
    f = doctor_add(l, s.n ? DOCTOR_OK : DOCTOR_UNKNOWN, "links", "%u pairs of GPUs: %s%s", n->all,
                   s.n ? s.text : "NVML does not tell how they are linked",
                   s.n && !n->nvlink ? "; no NVLink" : "");
    doctor_fact(f, "nvlink", json_integer(n->nvlink));
    doctor_fact(f, "one_switch", json_integer(n->near));
    doctor_fact(f, "switches", json_integer(n->switches));
    doctor_fact(f, "host_bridge", json_integer(n->bridge));
    doctor_fact(f, "between_cpus", json_integer(n->sockets));
}

/* ---- PCIe ----------------------------------------------------------------------------------- */

static void judge_slot(const struct doctor_gpu *g, unsigned i, struct doctor_line *s)
{
    if (g->width >= 0 && g->width_max > 0 && g->width < g->width_max)
        doctor_say_next(s, "; ", "GPU %u (%s) has x%d of x%d lanes", i, g->bus, g->width,
                        g->width_max);
    if (g->gen_max > 0 && g->gen_gpu > g->gen_max)
        doctor_say_next(s, "; ", "GPU %u (%s) can do PCIe %d.0, its slot %d.0", i, g->bus,
                        g->gen_gpu, g->gen_max);
    /* An idle card takes its link down to 1.0 and brings it up with the first work. */
    if (g->gen > 0 && g->gen < g->gen_max && g->pstate >= 0 && g->pstate <= 2)
        doctor_say_next(s, "; ", "GPU %u (%s) runs at PCIe %d.0 of %d.0 though it is busy", i,
                        g->bus, g->gen, g->gen_max);
}

static void judge_pcie(struct doctor_list *l, const struct doctor_gpus *g)
{
    struct doctor_line s = {0};
    struct doctor_finding *f;
    const struct doctor_gpu *first = &g->gpu[0];
    bool same = true, told = false;

    for (unsigned i = 0; i < g->count; i++) {
        judge_slot(&g->gpu[i], i, &s);
        same &= g->gpu[i].gen_max == first->gen_max && g->gpu[i].width_max == first->width_max;
        told |= g->gpu[i].gen_max > 0;
    }
    if (s.n) {
        f = doctor_add(l, DOCTOR_WARN, "pcie", "PCIe: %s", s.text);
        doctor_advise(
            f, "look at the slot, the riser and the BIOS (bifurcation, forced generation); under "
               "load: "
               "nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv");
    } else if (!told) {
        doctor_add(l, DOCTOR_UNKNOWN, "pcie", "NVML does not tell the PCIe links");
    } else if (same) {
        doctor_add(l, DOCTOR_OK, "pcie", "PCIe %d.0 x%d on every GPU", first->gen_max,
                   first->width_max);
    } else {
        doctor_add(l, DOCTOR_WARN, "pcie",
                   "the GPUs do not have the same PCIe links: a ring is as fast as its slowest");
    }
}

void doctor_gpus_judge(struct doctor_list *l, const struct doctor_gpus *g)
{
    struct pair_sums n;

    if (!g->loaded) {
        doctor_add(l, DOCTOR_UNKNOWN, "gpus", "GPUs can't be looked at: %s", g->why);
        return;
    }
    if (g->count == 0) {
        doctor_add(l, DOCTOR_UNKNOWN, "gpus", "NVML is there, but it shows no GPU");
        return;
    }
    judge_names(l, g);
    if (g->count > 1) {
        sum_pairs(g, &n);
        judge_access(l, g, &n);
        judge_links(l, &n);
    }
    judge_pcie(l, g);
}

/* ---- who else ------------------------------------------------------------------------------- */

void doctor_neighbours_judge(struct doctor_list *l, const struct doctor_gpus *g,
                             bool (*mine)(void *user, uint32_t pid), void *user)
{
    struct doctor_line s = {0};
    struct doctor_finding *f;
    json_t *pids = json_array();
    unsigned others = 0, told = 0;

    for (unsigned i = 0; i < g->count; i++) {
        told += g->gpu[i].processes >= 0;
        for (int k = 0; k < g->gpu[i].processes && k < DOCTOR_GPU_PIDS; k++) {
            if (mine && mine(user, g->gpu[i].pids[k]))
                continue;
            others++;
            doctor_say_next(&s, ", ", "%u on GPU %u", g->gpu[i].pids[k], i);
            json_array_append_new(pids, json_integer(g->gpu[i].pids[k]));
        }
    }
    if (!told) {
        json_decref(pids);
        return;
    }
    if (!others)
        f = doctor_add(l, DOCTOR_OK, "neighbours", "no %sprocess computes on the GPUs",
                       mine ? "other " : "");
    else if (mine)
        f = doctor_add(l, DOCTOR_WARN, "neighbours", "other processes compute on the GPUs: %s",
                       s.text);
    else
        f = doctor_add(l, DOCTOR_OK, "neighbours", "processes compute on the GPUs: %s", s.text);
    if (others && mine)
        doctor_advise(
            f, "their work shows in the times of this server; compare runs only while they rest");
    doctor_fact(f, "pids", pids);
}
