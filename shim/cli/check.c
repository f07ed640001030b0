/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "shim/cli/judged.h"
#include "shim/cli/options.h"
#include "shim/cli/vars_table.h"
#include "shim/cli/verbs.h"
#include "shim/profile/version.h"
#include "shim/show/json.h"

static const char help[] =
    "usage: ncclshim check [OPTION]... PROFILE...\n"
    "\n"
    "Say what NCCL would make of a profile: errors, dangers (wrong data, hangs), contradictions,\n"
    "settings without effect. PROFILE is a name or the path of an INI file.\n"
    "\n"
    "  --nccl VERSION|PATH  judge for this NCCL: 2.28.9, or the path of a libnccl.so.2\n"
    "  --env                together with this shell's variables and NCCL's own files\n"
    "  --strict             warnings count as bad, too\n"
    "  --json               for programs\n"
    "\n"
    "exit code: 0 good (there may be hints and warnings), 1 an error or a danger that the profile\n"
    "does not allow, 2 no such profile\n"
    "\n"
    "  ncclshim check fewer-channels\n"
    "  ncclshim check --nccl /usr/lib/x86_64-linux-gnu/libnccl.so.2 --env ./mine.ini\n";

struct request {
    int version;
    bool env, strict, json, table;
};

static void print_finding(const struct finding *f)
{
    if (f->line)
        printf("%s:%d: ", f->file, f->line);
    else if (*f->file)
        printf("%s: ", f->file);
    else if (f->origin == NCCLSHIM_ORIGIN_USER)
        printf("shell: ");
    printf("%s: ", severity_name(f->severity));
    if (*f->section)
        printf("[%s] ", f->section);
    if (*f->subject)
        printf("%s: ", f->subject);
    printf("%s%s%s%s\n", f->reason, *f->advice ? "; " : "", f->advice,
           f->allowed ? " (allowed by allow_unsafe)" : "");
}

static void print_count(size_t n, const char *one, const char *many, const char *behind)
{
    printf("%zu %s%s", n, n == 1 ? one : many, behind);
}

static void print_text(const char *name, const struct judged *j)
{
    for (size_t i = 0; i < j->findings.count; i++)
        print_finding(&j->findings.list[i]);
    printf("%s: ", j->p ? j->p->name : name);
    print_count(judged_count(j, SEVERITY_ERROR), "error", "errors", ", ");
    print_count(judged_count(j, SEVERITY_DANGER), "danger", "dangers", ", ");
    print_count(judged_count(j, SEVERITY_WARN), "warning", "warnings", ", ");
    print_count(judged_count(j, SEVERITY_HINT), "hint", "hints", "\n");
}

static json_t *to_json(const char *name, const struct judged *j, const struct request *q, bool good)
{
    json_t *root = json_object(), *list = json_array();
    char version[VERSION_TEXT_MAX];

    json_object_set_new(root, "profile", json_string(j->p ? j->p->name : name));
    if (j->p)
        json_object_set_new(root, "path", json_string(j->p->path));
    if (q->version)
        json_object_set_new(root, "nccl",
                            json_string(version_text(q->version, version, sizeof(version))));
    json_object_set_new(root, "good", json_boolean(good));
    for (size_t i = 0; i < j->findings.count; i++)
        json_array_append_new(list, finding_json(&j->findings.list[i]));
    json_object_set_new(root, "findings", list);
    return root;
}

static int check_one(const char *name, const struct request *q, json_t *all)
{
    struct judged j;
    struct error e;
    bool good;

    if (judged_load(name, q->env, q->version, &j, &e)) {
        judged_free(&j);
        return fail(2, &e);
    }
    good = !judged_bad(&j) && !(q->strict && judged_count(&j, SEVERITY_WARN));
    if (q->json)
        json_array_append_new(all, to_json(name, &j, q, good));
    else
        print_text(name, &j);
    judged_free(&j);
    return good ? 0 : 1;
}

static int check_all(int argc, char **argv, const struct request *q)
{
    json_t *all = json_array();
    struct error e;
    int worst = 0;

    for (int i = 0; i < argc; i++) {
        int rc = check_one(argv[i], q, all);
        worst = rc > worst ? rc : worst;
    }
    if (q->json &&
        json_print(json_incref(argc == 1 && json_array_size(all) ? json_array_get(all, 0) : all),
                   stdout, &e) < 0)
        worst = fail(2, &e);
    json_decref(all);
    return worst;
}

static const struct option_row rows[] = {
    {"nccl", .kind = OPTION_CALL, .at = offsetof(struct request, version), .take = take_nccl},
    {"env", .kind = OPTION_FLAG, .at = offsetof(struct request, env)},
    {"strict", .kind = OPTION_FLAG, .at = offsetof(struct request, strict)},
    {"json", .kind = OPTION_FLAG, .at = offsetof(struct request, json)},
    /* for docs/profiles.md; not in the help */
    {"table", .kind = OPTION_FLAG, .at = offsetof(struct request, table)},
    {.name = NULL},
};

int verb_check(int argc, char **argv)
{
    struct request q = {0};
    int rc = options_read(argc, argv, &(struct options){help, rows, false}, &q, NULL);

    if (rc >= 0)
        return rc;
    if (q.table) {
        vars_table_write(stdout);
        return 0;
    }
    if (optind == argc)
        return usage(help, 0);
    return check_all(argc - optind, argv + optind, &q);
}
