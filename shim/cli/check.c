/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "shim/cli/judged.h"
#include "shim/cli/verbs.h"
#include "shim/profile/version.h"
#include "shim/cli/vars_table.h"

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

struct options {
    int version;
    bool env, strict, json;
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

static json_t *to_json(const char *name, const struct judged *j, const struct options *o, bool good)
{
    json_t *root = json_object(), *list = json_array();
    char version[VERSION_TEXT_MAX];

    json_object_set_new(root, "profile", json_string(j->p ? j->p->name : name));
    if (j->p)
        json_object_set_new(root, "path", json_string(j->p->path));
    if (o->version)
        json_object_set_new(root, "nccl",
                            json_string(version_text(o->version, version, sizeof(version))));
    json_object_set_new(root, "good", json_boolean(good));
    for (size_t i = 0; i < j->findings.count; i++)
        json_array_append_new(list, finding_json(&j->findings.list[i]));
    json_object_set_new(root, "findings", list);
    return root;
}

static int check_one(const char *name, const struct options *o, json_t *all)
{
    struct judged j;
    struct error e;
    bool good;

    if (judged_load(name, o->env, o->version, &j, &e)) {
        judged_free(&j);
        return fail(2, &e);
    }
    good = !judged_bad(&j) && !(o->strict && judged_count(&j, SEVERITY_WARN));
    if (o->json)
        json_array_append_new(all, to_json(name, &j, o, good));
    else
        print_text(name, &j);
    judged_free(&j);
    return good ? 0 : 1;
}

static int check_all(int argc, char **argv, const struct options *o)
{
    json_t *all = json_array();
    int worst = 0;

    for (int i = 0; i < argc; i++) {
        int rc = check_one(argv[i], o, all);
        worst = rc > worst ? rc : worst;
    }
    if (o->json) {
        json_dumpf(argc == 1 && json_array_size(all) ? json_array_get(all, 0) : all, stdout,
                   JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(all);
    return worst;
}

int verb_check(int argc, char **argv)
{
    static const struct option longs[] = {
        {"nccl", required_argument, NULL, 'n'},
        {"env", no_argument, NULL, 'e'},
        {"strict", no_argument, NULL, 's'},
        {"json", no_argument, NULL, 'j'},
        {"table", no_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct options o = {0};
    struct error e;

    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;)
        switch (c) {
        case 'n':
            o.version = target_version(optarg, &e);
            if (!o.version)
                return fail(2, &e);
            break;
        case 'e':
            o.env = true;
            break;
        case 's':
            o.strict = true;
            break;
        case 'j':
            o.json = true;
            break;
        case 't': /* for docs/profiles.md; not in the help */
            vars_table_write(stdout);
            return 0;
        case 'h':
            return usage(help, 1);
        default:
            return usage(help, 0);
        }
    if (optind == argc)
        return usage(help, 0);
    return check_all(argc - optind, argv + optind, &o);
}
