/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <limits.h>
#include <stdlib.h>

#include "shim/cli/options.h"
#include "shim/prove/doctor/doctor_look.h"
#include "shim/show/json.h"
#include "shim/show/term.h"

static const char help[] =
    "usage: ncclshim doctor [OPTION]...\n"
    "\n"
    "What stands in the way of fast collectives, and of seeing them: how the GPUs are linked, "
    "PCIe, ACS\n"
    "and IOMMU, /dev/shm, limits, NCCL's libraries, files and plugins, and for each process that "
    "has NCCL\n"
    "whether the shim is in it and calls are being timed now. It looks and changes nothing.\n"
    "\n"
    "  --pid PID          look at this process and its children, with their environment\n"
    "  --server-log FILE  read a server's output: all-reduce paths that bypass NCCL, and the "
    "switch that\n"
    "                     turns each off (vLLM, SGLang, TensorRT-LLM, LMDeploy)\n"
    "  --json             for programs; docs/doctor.md has the keys\n"
    "  -h, --help\n"
    "\n"
    "exit code: 0 nothing is bad (there may be warnings), 1 something is, 2 no such process or "
    "file\n"
    "\n"
    "examples:\n"
    "  ncclshim doctor\n"
    "  ncclshim doctor --pid $(pgrep -of sglang.launch_server) --server-log server.log\n"
    "  sudo ncclshim doctor --json | jq '.findings[] | select(.level != \"ok\")'\n";

struct request {
    struct doctor_options look;
    bool json;
};

static const struct option_row rows[] = {
    {"pid", .kind = OPTION_NUMBER, .at = offsetof(struct request, look.pid), .least = 1,
     .most = INT_MAX},
    {"server-log", .kind = OPTION_TEXT, .at = offsetof(struct request, look.server_log)},
    {"json", .kind = OPTION_FLAG, .at = offsetof(struct request, json)},
    {.name = NULL},
};

static void print_text(const struct doctor_list *l)
{
    static const enum colour colours[] = {COLOUR_GREEN, COLOUR_DIM, COLOUR_YELLOW, COLOUR_RED};
    struct term t = term_of(stdout);
    char safe[16384];

    for (size_t i = 0; i < l->count; i++) {
        const struct doctor_finding *f = &l->list[i];
        printf("%s%-7s%s ", term_on(&t, colours[f->level]), doctor_level_name(f->level),
               term_off(&t));
        print_wrapped(&t, safe_text(f->text, safe, sizeof(safe)), 8);
        if (f->advice) {
            printf("        ");
            print_wrapped(&t, safe_text(f->advice, safe, sizeof(safe)), 8);
        }
    }
}

static json_t *to_json(const struct doctor_list *l)
{
    json_t *list = json_array(), *all = json_object();

    for (size_t i = 0; i < l->count; i++) {
        const struct doctor_finding *f = &l->list[i];
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:o,s:o,s:O}", "level", doctor_level_name(f->level), "topic",
                            f->topic, "text", json_text(f->text), "advice", json_text(f->advice),
                            "facts", f->facts ? f->facts : json_null()));
    }
    for (enum doctor_level v = DOCTOR_OK; v <= DOCTOR_BAD; v++)
        json_object_set_new(all, doctor_level_name(v), json_u64(doctor_count(l, v)));
    json_object_set_new(all, "findings", list);
    return all;
}

int verb_doctor(int argc, char **argv)
{
    struct request q = {.look = {.root = "", .moment_ms = 500}};
    const char *root = getenv("NCCLSHIM_DOCTOR_ROOT"); /* tests: a made-up machine */
    struct doctor_list l = {0};
    struct error e = {0};
    int rc = options_read(argc, argv, &(struct options){help, rows, false}, &q, NULL);

    if (rc < 0)
        rc = options_none(argc, argv, "a process is named with --pid, a file with --server-log");
    if (rc >= 0)
        return rc;
    if (root)
        q.look.root = root;
    rc = doctor_look(&q.look, &l, &e);
    if (rc == 0 && l.broken)
        rc = error_set(&e, "", 0, "out of memory");
    if (rc == 0 && !q.json)
        print_text(&l);
    else if (rc == 0)
        rc = json_print(to_json(&l), stdout, &e);
    rc = rc < 0 ? fail(2, &e) : doctor_count(&l, DOCTOR_BAD) != 0;
    doctor_list_free(&l);
    return rc;
}
