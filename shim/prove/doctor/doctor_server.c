/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/doctor/doctor_server.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- what each server calls its paths, and how each is turned off
 * -------------------------------- */

/* Names in vLLM's line "Using [...] all-reduce backends (in dispatch order)"; NULL: it is NCCL. */
static const struct {
    const char *name, *advice;
} backends[] = {
    {"PYNCCL", NULL},
    {"NCCL_SYMM_MEM", NULL},
    {"CUSTOM", "--disable-custom-all-reduce"},
    {"SYMM_MEM", "VLLM_ALLREDUCE_USE_SYMM_MEM=0"},
    {"FLASHINFER", "VLLM_ALLREDUCE_USE_FLASHINFER=0"},
    {"FLASHINFER_PCIE_IPC", "VLLM_ALLREDUCE_USE_FLASHINFER_PCIE_IPC=0"},
    {"QUICK_REDUCE", "leave VLLM_ROCM_QUICK_REDUCE_QUANTIZATION unset"},
    {"AITER_CUSTOM", "VLLM_ROCM_USE_AITER_CUSTOM_AR=0"},
};

/* Lines that name a path by themselves. */
static const struct {
    const char *mark, *also; /* both must stand in the line; also may be NULL */
    const char *topic;
    enum doctor_level level;
    const char *subject, *advice;
} lines[] = {
    {"Enabled custom fusions:", "allreduce_rms", "server-fusion", DOCTOR_WARN,
     "vLLM's all-reduce fused with RMSNorm",
     "--compilation-config '{\"pass_config\": {\"fuse_allreduce_rms\": false}}'"},
    {"Initialized FlashInfer Allreduce norm fusion workspace", NULL, "server-fusion", DOCTOR_WARN,
     "vLLM's all-reduce fused with RMSNorm",
     "--compilation-config '{\"pass_config\": {\"fuse_allreduce_rms\": false}}'"},
    {"FlashInfer AllReduce Fusion enabled", NULL, "server-fusion", DOCTOR_WARN,
     "SGLang's FlashInfer all-reduce fusion",
     "leave out --enable-flashinfer-allreduce-fusion, or give "
     "--enforce-disable-flashinfer-allreduce-fusion"},
};

/* Flags in what SGLang, LMDeploy and others print of their arguments. */
static const struct {
    const char *key, *value; /* value NULL: any but none and nccl */
    const char *topic;
    enum doctor_level level;
    const char *subject, *advice;
} flags[] = {
    {"enable_mscclpp", "true", "server-bypass", DOCTOR_WARN, "MSCCL++ (SGLang)",
     "leave out --enable-mscclpp"},
    {"enable_torch_symm_mem", "true", "server-bypass", DOCTOR_WARN,
     "torch symmetric memory (SGLang)", "leave out --enable-torch-symm-mem"},
    {"enable_flashinfer_allreduce_fusion", "true", "server-fusion", DOCTOR_WARN,
     "SGLang's FlashInfer all-reduce fusion",
     "leave out --enable-flashinfer-allreduce-fusion, or give "
     "--enforce-disable-flashinfer-allreduce-fusion"},
    {"enable_aiter_allreduce_fusion", "true", "server-fusion", DOCTOR_WARN,
     "AITER's all-reduce fusion (SGLang)", "leave out --enable-aiter-allreduce-fusion"},
    {"enable_memory_saver", "true", "server-preload", DOCTOR_WARN, "torch_memory_saver (SGLang)",
     "leave out --enable-memory-saver, or name the shim in /etc/ld.so.preload of the container "
     "(docs/use/sglang.md)"},
    {"moe_a2a_backend", NULL, "server-all-to-all", DOCTOR_WARN, "", "--moe-a2a-backend none"},
    {"communicator", "cuda-ipc", "server-bypass", DOCTOR_WARN, "CUDA IPC (LMDeploy)",
     "--communicator nccl"},
    {"communicator", "native", "server-bypass", DOCTOR_WARN, "CUDA IPC (LMDeploy)",
     "--communicator nccl"},
};

/* ---- small words of a line ------------------------------------------------------------------ */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* KEY=value, "key": value, key: 'value'. False when the key does not stand there as a whole word
 * with a value. */
static bool value_of(const char *line, const char *key, char *buf, size_t size)
{
    size_t length = strlen(key), n;

    for (const char *at = line; (at = strstr(at, key)); at += length) {
        const char *v = at + length;
        if ((at > line && (is_word(at[-1]) || at[-1] == '-')) || is_word(*v))
            continue;
        v += *v == '"' || *v == '\'';
        if (*v != '=' && *v != ':')
            continue;
        v++;
        v += strspn(v, " '\"");
        if (!strncmp(v, "<AllReduceStrategy.", 19)) /* Python's repr of an enumeration */
            v += 19;
        n = strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
        if (!n)
            continue;
        snprintf(buf, size, "%.*s", (int)(n < size ? n : size - 1), v);
        return true;
    }
    return false;
}

static void say(struct doctor_server *s, const char *topic, enum doctor_level level,
                const char *subject, const char *group, const char *advice)
{
    struct doctor_said *x;

    for (unsigned i = 0; i < s->count; i++) {
        x = &s->said[i];
        if (!strcmp(x->topic, topic) && !strcmp(x->subject, subject) && !strcmp(x->group, group)) {
            x->lines++;
            return;
        }
    }
    if (s->count == DOCTOR_SAID_MAX) {
        s->overflow = true;
        return;
    }
    x = &s->said[s->count++];
    *x = (struct doctor_said){.topic = topic, .level = level, .advice = advice, .lines = 1};
    snprintf(x->subject, sizeof(x->subject), "%s", subject);
    snprintf(x->group, sizeof(x->group), "%s", group);
}

/* ---- vLLM ----------------------------------------------------------------------------------- */

static void say_backend(struct doctor_server *s, const char *name, const char *group)
{
    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++)
        if (!strcmp(backends[i].name, name)) {
            if (backends[i].advice)
                say(s, "server-bypass", DOCTOR_WARN, name, group, backends[i].advice);
            else
                say(s, "server-nccl", DOCTOR_OK, name, group, NULL);
            return;
        }
    say(s, "server-bypass", DOCTOR_WARN, name, group, NULL);
}

/* Using ['CUSTOM', 'PYNCCL'] all-reduce backends (in dispatch order) for group 'tp:0' out of ... */
static void read_backends(struct doctor_server *s, const char *line)
{
    const char *end = strstr(line, "] all-reduce backends"), *at = end, *g;
    char group[32] = "", name[64];

    if (!end)
        return;
    while (at > line && *at != '[')
        at--;
    if (*at != '[')
        return;
    g = strstr(end, "for ");
    if (g && (g = strchr(g, '\'')))
        snprintf(group, sizeof(group), "%.*s", (int)strcspn(g + 1, "'"), g + 1);
    s->named = s->vllm = true;
    while (at < end) {
        size_t n;
        at += strcspn(at, "'\"]") + 1;
        if (at >= end)
            break;
        n = strcspn(at, "'\"]");
        snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : sizeof(name) - 1), at);
        say_backend(s, name, group);
        at += n + 1;
    }
}

/* Custom allreduce is disabled because your platform lacks GPU P2P capability or P2P test failed.
 * To ... */
static void read_custom_off(struct doctor_server *s, const char *line)
{
    static const char mark[] = "Custom allreduce is disabled ";
    const char *at = strstr(line, mark);
    char reason[64];
    size_t n;

    if (!at)
        return;
    at += sizeof(mark) - 1;
    n = strcspn(at, ".");
    snprintf(reason, sizeof(reason), "%.*s", (int)(n < sizeof(reason) ? n : sizeof(reason) - 1),
             at);
    s->custom = 1;
    say(s, "server-custom-off", DOCTOR_OK, reason, "", NULL);
}

/* ---- the others ----------------------------------------------------------------------------- */

static void read_strategy(struct doctor_server *s, const char *line)
{
    char value[64];

    if (!value_of(line, "allreduce_strategy", value, sizeof(value)) ||
        !isupper((unsigned char)value[0]))
        return; /* source code in a traceback, not a value */
    s->named = true;
    if (!strcmp(value, "NCCL") || !strcmp(value, "NCCL_SYMMETRIC"))
        say(s, "server-nccl", DOCTOR_OK, value, "TensorRT-LLM", NULL);
    else
        say(s, "server-strategy", DOCTOR_WARN, value, "TensorRT-LLM",
            "allreduce_strategy: NCCL in the options file (--extra_llm_api_options)");
}

static void read_flags(struct doctor_server *s, const char *line)
{
    char value[64];

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (!value_of(line, flags[i].key, value, sizeof(value)))
            continue;
        if (flags[i].value ? !strcasecmp(value, flags[i].value)
                           : strcasecmp(value, "none") && strcasecmp(value, "nccl"))
            say(s, flags[i].topic, flags[i].level, flags[i].value ? flags[i].subject : value, "",
                flags[i].advice);
    }
    if (value_of(line, "disable_custom_all_reduce", value, sizeof(value))) {
        if (!strcasecmp(value, "true"))
            s->custom = 1;
        else if (!strcasecmp(value, "false") && s->custom < 0)
            s->custom = 0;
        s->sglang |= strstr(line, "ServerArgs(") || strstr(line, "server_args");
    }
    if (value_of(line, "tensor_parallel_size", value, sizeof(value)) ||
        value_of(line, "tp_size", value, sizeof(value)))
        sscanf(value, "%9d", &s->tensor_parallel);
}

void doctor_server_line(struct doctor_server *s, const char *line)
{
    s->lines++;
    read_backends(s, line);
    read_custom_off(s, line);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (strstr(line, lines[i].mark) && (!lines[i].also || strstr(line, lines[i].also)))
            say(s, lines[i].topic, lines[i].level, lines[i].subject, "", lines[i].advice);
    read_strategy(s, line);
    read_flags(s, line);
}
