/* SPDX-License-Identifier: Apache-2.0 */
/* Each variable by itself, and with its nearest relatives. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "shim/profile/env_value.h"
#include "shim/profile/judge.h"

#define KIB 1024ll
#define MIB (1024ll * 1024)
#define SIMPLE_STEPS 8    /* NCCL_STEPS: slices of every buffer */
#define LL128_LINES 15360 /* 120 (data bytes of a line) x 128 (bytes of a line) */

static bool power_of_two(long long n)
{
    return n > 0 && !(n & (n - 1));
}

static void buffer(const struct judge *j, const struct setting *s, long long n)
{
    if (n == -2)
        return;
    if (n % (32 * KIB))
        ON_SETTING(j, SEVERITY_DANGER, s, "take a power of two from 32K on",
                   "%lld is no multiple of 32 KiB: NCCL cuts the buffer into 8 slices without "
                   "looking, and such sizes gave wrong sums or hung (1000000 is a known one)",
                   n);
    else if (!power_of_two(n))
        ON_SETTING(j, SEVERITY_WARN, s, "take a power of two",
                   "%lld is no power of two, which is all that NCCL is tested with", n);
    else if (n < 512 * KIB && !strcmp(s->name, "NCCL_BUFFSIZE"))
        ON_SETTING(j, SEVERITY_HINT, s, "",
                   "a small buffer (NCCL's own: 4 MiB) means many small steps: large messages get "
                   "slower");
}

static void ll128_buffer(const struct judge *j, const struct setting *s, long long n)
{
    if (n != -2 && n % LL128_LINES)
        ON_SETTING(
            j, SEVERITY_DANGER, s,
            "take 120 times a power of two, from 15360 on (NCCL's own: 4915200)",
            "%lld does not hold whole LL128 lines (120 bytes of data in 128) in each of its 8 "
            "slices: hangs and wrong data are known",
            n);
}

static void threads(const struct judge *j, const struct setting *s, long long n)
{
    if (n <= 0)
        return;
    if (n % 32)
        ON_SETTING(j, SEVERITY_DANGER, s, "take 64, 128, 256 or 512",
                   "%lld is no multiple of 32: NCCL takes 512 instead, without a word", n);
    else if (!power_of_two(n))
        ON_SETTING(j, SEVERITY_DANGER, s, "take 64, 128, 256 or 512",
                   "%lld does not divide the slices evenly: 480 is known to give wrong sums with "
                   "the Simple protocol",
                   n);
    else if (n < 256)
        ON_SETTING(j, SEVERITY_HINT, s, "leave it out, or take 256 or 512",
                   "read as %lld; below 256 threads LL loses much of its speed (64: twice the time "
                   "for 42 KiB)%s",
                   n, n == 64 ? ", and old versions failed at receive" : "");
}

static void ll128_threads(const struct judge *j, const struct setting *s, long long n)
{
    if (n > 0 && n % 32)
        ON_SETTING(j, SEVERITY_ERROR, s, "take a multiple of 32 from 160 to 640",
                   "%lld is no multiple of 32: NCCL takes 640 instead, without a word", n);
}

static void chunk(const struct judge *j, const struct setting *s, long long n)
{
    long long step = setting_number(settings_find(j->s, "NCCL_BUFFSIZE"), 4 * MIB) / SIMPLE_STEPS;

    if (n >= MIB || (n && step > 0 && n > step))
        ON_SETTING(
            j, SEVERITY_DANGER, s, "take less than 1M, and at most an eighth of NCCL_BUFFSIZE",
            "a chunk of %lld bytes outruns the slices of the buffer: faster, with wrong data", n);
}

static void comm_id(const struct judge *j, const struct setting *s, long long n)
{
    (void)n;
    ON_SETTING(
        j, SEVERITY_DANGER, s, "leave the meeting of the ranks to the program",
        "it replaces the unique id of every communicator of the job: the second communicator "
        "hangs, and servers make several");
}

static void blocking(const struct judge *j, const struct setting *s, long long n)
{
    if (n == 0)
        ON_SETTING(j, SEVERITY_DANGER, s, "leave it to the program",
                   "it makes every communicator non-blocking: a program that does not poll hangs "
                   "or fails");
}

static void host_id(const struct judge *j, const struct setting *s, long long n)
{
    (void)n;
    ON_SETTING(j, SEVERITY_WARN, s, "leave it out of profiles that more than one machine uses",
               "ranks with one id are taken to share a machine; on several machines that hangs");
}

static void p2p_level(const struct judge *j, const struct setting *s, long long n)
{
    static const char *const old[] = {"LOC", "PIX", "PXB", "PHB", "SYS", "SYS"};
    const struct setting *off = settings_find(j->s, "NCCL_P2P_DISABLE");

    if (*s->value >= '0' && *s->value <= '9')
        ON_SETTING(j, SEVERITY_HINT, s, "write the name", "%lld is an old number for %s", n,
                   old[n < 5 ? n : 5]);
    if (off && !strcmp(s->name, "NCCL_P2P_LEVEL") && setting_number(off, 0) == 1)
        ON_SETTING(j, SEVERITY_WARN, s, "keep one of the two",
                   "no effect: NCCL_P2P_DISABLE=1 goes before it");
    else if (!strcmp(s->value, "SYS") && !strcmp(s->name, "NCCL_P2P_LEVEL"))
        ON_SETTING(j, SEVERITY_HINT, s, "check with `ncclshim doctor`",
                   "peer-to-peer across every bridge; where that is broken, the first collective "
                   "hangs or sums are wrong");
}

static void p2p_disable(const struct judge *j, const struct setting *s, long long n)
{
    if (n == 1 && setting_number(settings_find(j->s, "NCCL_SHM_DISABLE"), 0))
        ON_SETTING(j, SEVERITY_WARN, s, "keep one of the two",
                   "with NCCL_SHM_DISABLE as well, GPUs of one machine talk over the network");
}

static void mixing(const struct judge *j, const struct setting *s, long long n)
{
    if (n == 0)
        ON_SETTING(j, SEVERITY_WARN, s,
                   "`ncclshim report` shows which communicators are used both ways",
                   "cheaper replays, on a condition: no communicator in two graphs at once, and no "
                   "eager call on "
                   "one while a graph that uses it runs, not even in stream order; else it hangs "
                   "or gives wrong data");
}

static void ordering(const struct judge *j, const struct setting *s, long long n)
{
    if (n == 0 && setting_number(settings_find(j->s, "NCCL_GRAPH_MIXING_SUPPORT"), 1))
        ON_SETTING(j, SEVERITY_WARN, s,
                   "set NCCL_GRAPH_MIXING_SUPPORT = 0 as well, on its condition",
                   "NCCL sets it back to 1 while graph mixing is on");
}

static void nvls(const struct judge *j, const struct setting *s, long long n)
{
    if (n == 1)
        ON_SETTING(j, SEVERITY_WARN, s, "2 takes NVLS where there is any",
                   "it forces NVLS: init fails on machines without NVLink SHARP");
}

static void debug_file(const struct judge *j, const struct setting *s, long long n)
{
    (void)n;
    if (!strstr(s->value, "%p") && strcasecmp(s->value, "stdout") && strcasecmp(s->value, "stderr"))
        ON_SETTING(j, SEVERITY_HINT, s, "add %p",
                   "without %%p the processes write over one another");
}

static void debug(const struct judge *j, const struct setting *s, long long n)
{
    (void)n;
    if (!strcasecmp(s->value, "TRACE"))
        ON_SETTING(j, SEVERITY_HINT, s, "INFO with NCCL_DEBUG_SUBSYS tells most",
                   "TRACE lines are only in libraries built with TRACE=1");
}

static void graph_file(const struct judge *j, const struct setting *s, long long n)
{
    (void)n;
    if (!strcmp(s->name, "NCCL_GRAPH_FILE"))
        ON_SETTING(
            j, SEVERITY_WARN, s, "put it into a [comm NAME] section with ranks = N",
            "a graph is for one number of ranks: communicators of another size fail at init");
    if (access(s->value, R_OK))
        ON_SETTING(j, SEVERITY_WARN, s, "", "there is no such file here");
}

static void no_cache(const struct judge *j, const struct setting *s, long long n)
{
    (void)n;
    if (!strcasecmp(s->value, "ALL"))
        ON_SETTING(j, SEVERITY_WARN, s, "name the variables that must be read anew",
                   "every number is then read again under a lock at every launch");
}

static void fifo(const struct judge *j, const struct setting *s, long long n)
{
    if (!power_of_two(n))
        ON_SETTING(j, SEVERITY_ERROR, s, "take a power of two",
                   "%lld is no power of two: NCCL takes 1 MiB instead", n);
}

static void race(const struct judge *j, const struct setting *s, long long n)
{
    if (n == 0)
        ON_SETTING(j, SEVERITY_WARN, s, "",
                   "it hides races of threads that launch on one communicator");
}

static void plugin(const struct judge *j, const struct setting *s, long long n)
{
    (void)n;
    ON_SETTING(j, SEVERITY_HINT, s, "",
               "ncclshim stands in this place itself and loads the one named here behind itself");
}

static void policy(const struct judge *j, const struct setting *s, long long n)
{
    (void)n;
    if ((*s->value < '0' || *s->value > '9') && older_than(j, 22900))
        ON_SETTING(j, SEVERITY_WARN, s, "write 0, 1 or 2",
                   "NCCL before 2.29 reads a number: 0 of this");
}

static void sym_kernel(const struct judge *j, const struct setting *s, long long n)
{
    (void)n;
    ON_SETTING(j, SEVERITY_HINT, s, "",
               "an unknown kernel's name turns symmetric kernels off, without a word");
}

static const struct {
    const char *name;
    void (*judge)(const struct judge *j, const struct setting *s, long long number);
} rules[] = {
    {"NCCL_BUFFSIZE", buffer},
    {"NCCL_LL_BUFFSIZE", buffer},
    {"NCCL_LL128_BUFFSIZE", ll128_buffer},
    {"NCCL_NTHREADS", threads},
    {"NCCL_LL128_NTHREADS", ll128_threads},
    {"NCCL_CHUNK_SIZE", chunk},
    {"NCCL_COMM_ID", comm_id},
    {"NCCL_COMM_BLOCKING", blocking},
    {"NCCL_HOSTID", host_id},
    {"NCCL_P2P_LEVEL", p2p_level},
    {"NCCL_NET_GDR_LEVEL", p2p_level},
    {"NCCL_P2P_DISABLE", p2p_disable},
    {"NCCL_GRAPH_MIXING_SUPPORT", mixing},
    {"NCCL_GRAPH_STREAM_ORDERING", ordering},
    {"NCCL_NVLS_ENABLE", nvls},
    {"NCCL_DEBUG_FILE", debug_file},
    {"NCCL_DEBUG", debug},
    {"NCCL_GRAPH_FILE", graph_file},
    {"NCCL_TOPO_FILE", graph_file},
    {"NCCL_NO_CACHE", no_cache},
    {"NCCL_WORK_FIFO_BYTES", fifo},
    {"NCCL_LAUNCH_RACE_FATAL", race},
    {"NCCL_TUNER_PLUGIN", plugin},
    {"NCCL_PROFILER_PLUGIN", plugin},
    {"NCCL_ENV_PLUGIN", plugin},
    {"NCCL_CTA_POLICY", policy},
    {"NCCL_SYM_KERNEL", sym_kernel},
};

/* Names and values that no profile reader has looked at: the shell's and NCCL's own files'. */
static bool readable(const struct judge *j, const struct setting *s, const struct nccl_var *v)
{
    const char *near = v ? NULL : nccl_var_nearest(s->name);
    char why[512];

    if (!v && from_profile(s))
        ON_SETTING(j, SEVERITY_HINT, s, "",
                   "not in the table of variables; passed on as it is, as allow_unknown says");
    else if (!v)
        ON_SETTING(j, SEVERITY_WARN, s, "unset it", "no NCCL reads this%s%s%s",
                   near ? " (is '" : "", near ? near : "", near ? "' meant?)" : "");
    else if (!from_profile(s) && env_value_misread(v, s->value, why, sizeof(why)))
        ON_SETTING(j, SEVERITY_ERROR, s, "", "'%.80s': %s", s->value, why);
    else
        return true;
    return false;
}

void check_values(const struct judge *j)
{
    for (size_t i = 0; i < j->s->count; i++) {
        const struct setting *s = &j->s->list[i];
        const struct nccl_var *v = nccl_var_find(s->name);
        if (s->profile_lost)
            ON_SETTING(j, SEVERITY_WARN, s,
                       "unset it in the shell, or move the line to [env override]",
                       "the profile asks for %s, the user's own value %s is kept", s->asked->value,
                       s->value);
        if (strncmp(s->name, "NCCL_", 5) || !readable(j, s, v) || !*s->value)
            continue;
        for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++)
            if (!strcmp(rules[r].name, s->name))
                rules[r].judge(j, s, setting_number(s, 0));
    }
}
