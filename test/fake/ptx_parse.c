/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text: directives, declarations, labels; splits instructions for ptx_decode.c. */
#include "test/fake/ptx_parts.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEWEST_PTX = 90, MAX_LABELS = 256 };

struct label {
    char text[64];
    uint32_t at;
};

struct parser {
    char *start, *at;
    char *log;
    size_t log_bytes;
    jmp_buf give_up;
    CUresult result;
    struct ptx_module *module;
    struct ptx_scope scope;
    struct ptx_names names;
    struct label labels[MAX_LABELS];
    size_t nlabels;
    struct label branches[MAX_LABELS]; /* at: the instruction */
    size_t nbranches;
    int sm;
};

__attribute__((noreturn, format(printf, 3, 4))) static void
refuse(struct parser *p, CUresult result, const char *format, ...)
{
    char reason[256];
    va_list arguments;
    int line = 1;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    for (char *c = p->start; c < p->at && *c != '\0'; c++) {
        line += *c == '\n';
    }
    char *begin = p->at, *end = p->at;
    while (begin > p->start && begin[-1] != '\n') {
        begin--;
    }
    while (*end != '\0' && *end != '\n') {
        end++;
    }
    while (begin < end && isspace((unsigned char)*begin)) {
        begin++;
    }
    snprintf(p->log, p->log_bytes, "line %d: %s: %.*s", line, reason, (int)(end - begin), begin);
    p->result = result;
    longjmp(p->give_up, 1);
}

#define BAD(p, ...) refuse(p, CUDA_ERROR_INVALID_PTX, __VA_ARGS__)

/* ---- text ---- */

/* Comments become spaces; lines stay. */
static char *without_comments(const char *text)
{
    char *copy = strdup(text);
    for (char *c = copy; copy != NULL && *c != '\0'; c++) {
        if (c[0] == '/' && c[1] == '/') {
            while (*c != '\0' && *c != '\n') {
                *c++ = ' ';
            }
            c -= *c == '\0';
        } else if (c[0] == '/' && c[1] == '*') {
            char *end = strstr(c + 2, "*/");
            end = end != NULL ? end + 2 : c + strlen(c);
            for (; c < end; c++) {
                *c = *c == '\n' ? '\n' : ' ';
            }
            c--;
        }
    }
    return copy;
}

static void skip_space(struct parser *p)
{
    while (isspace((unsigned char)*p->at)) {
        p->at++;
    }
}

static bool take(struct parser *p, char c)
{
    skip_space(p);
    if (*p->at != c) {
        return false;
    }
    p->at++;
    return true;
}

static void expect(struct parser *p, char c)
{
    if (!take(p, c)) {
        BAD(p, "'%c' expected", c);
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

/* A name, a directive or a number. */
static void word(struct parser *p, char *out, size_t bytes)
{
    size_t n = 0;
    skip_space(p);
    while (is_word(*p->at) && (n == 0 || *p->at != '.' || isdigit((unsigned char)p->at[1]))) {
        if (n + 1 >= bytes) {
            BAD(p, "name too long");
        }
        out[n++] = *p->at++;
    }
    out[n] = '\0';
    if (n == 0) {
        BAD(p, "name expected");
    }
}

static long whole(struct parser *p)
{
    char *end;
    skip_space(p);
    long value = strtol(p->at, &end, 0);
    if (end == p->at) {
        BAD(p, "number expected");
    }
    p->at = end;
    return value;
}

static void skip_line(struct parser *p)
{
    while (*p->at != '\0' && *p->at != '\n') {
        p->at++;
    }
}

/* ---- registers ---- */

static void declare_registers(struct parser *p)
{
    char type[64];
    char kind = 'b';
    word(p, type, sizeof type);
    int bytes = ptx_type_bytes(type + (type[0] == '.'), &kind);
    if (bytes == 0) {
        BAD(p, "unknown type of register");
    }
    do {
        struct ptx_name name = {.bytes = bytes, .kind = kind};
        word(p, name.text, sizeof name.text);
        if (take(p, '<')) {
            name.count = (int)whole(p);
            expect(p, '>');
        }
        name.slot = ptx_slots(p->scope.kernel, name.count > 0 ? name.count : 1);
        if (name.slot < 0) {
            BAD(p, "too many registers");
        }
        p->names.list = sim_grow(p->names.list, p->names.n + 1, sizeof name);
        p->names.list[p->names.n++] = name;
    } while (take(p, ','));
    expect(p, ';');
}

/* ---- instructions ---- */

static void split_opcode(struct parser *p, char *text, struct ptx_text *out)
{
    for (char *part = text, *next; part != NULL; part = next) {
        next = strchr(part, '.');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (out->nparts == 12 || strlen(part) >= sizeof out->parts[0]) {
            BAD(p, "instruction not known to the simulator");
        }
        strcpy(out->parts[out->nparts++], part);
    }
}

/* At commas outside of {} and []; without spaces. */
static void split_operands(struct parser *p, const char *text, struct ptx_text *out)
{
    int depth = 0;
    size_t n = 0;
    for (;; text++) {
        char c = *text;
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (c == '\0' || (c == ',' && depth == 0)) {
            if (n > 0) {
                out->operands[out->noperands++][n] = '\0';
            }
            n = 0;
            if (c == '\0') {
                return;
            }
        } else if (!isspace((unsigned char)c)) {
            if (out->noperands == 8 || n + 1 >= sizeof out->operands[0]) {
                BAD(p, "too many or too long operands");
            }
            out->operands[out->noperands][n++] = c;
        }
    }
}

static void add_instruction(struct parser *p, const struct ptx_insn *insn)
{
    struct ptx_kernel *kernel = p->scope.kernel;
    kernel->code = sim_grow(kernel->code, kernel->ncode + 1, sizeof *kernel->code);
    kernel->code[kernel->ncode++] = *insn;
}

static void instruction(struct parser *p)
{
    char text[1024];
    struct ptx_text parts = {0};
    struct ptx_insn insn = {.predicate = -1};
    char *end = strchr(p->at, ';');
    if (end == NULL || (size_t)(end - p->at) >= sizeof text) {
        BAD(p, "';' expected");
    }
    memcpy(text, p->at, (size_t)(end - p->at));
    text[end - p->at] = '\0';
    char *at = text;
    if (*at == '@') {
        at++;
        parts.has_predicate = true;
        parts.negate = *at == '!';
        at += parts.negate;
        size_t n = strcspn(at, " \t\r\n");
        if (n == 0 || n >= sizeof parts.predicate) {
            BAD(p, "predicate expected");
        }
        memcpy(parts.predicate, at, n);
        at += n;
        at += strspn(at, " \t\r\n");
    }
    size_t n = strcspn(at, " \t\r\n");
    char *operands = at + n + (at[n] != '\0');
    at[n] = '\0';
    split_opcode(p, at, &parts);
    split_operands(p, operands, &parts);
    if (parts.has_predicate) {
        int bytes;
        char kind;
        insn.predicate = (int16_t)ptx_register(&p->scope, parts.predicate, &bytes, &kind);
        insn.negate = parts.negate;
        if (insn.predicate < 0 || kind != 'p') {
            BAD(p, "not a predicate register");
        }
    }
    const char *reason = ptx_decode(&p->scope, &parts, &insn);
    if (reason != NULL) {
        BAD(p, "%s", reason);
    }
    if (insn.op == I_BRA) {
        if (p->nbranches == MAX_LABELS) {
            BAD(p, "too many branches");
        }
        struct label *branch = &p->branches[p->nbranches++];
        if (strlen(parts.operands[0]) >= sizeof branch->text) {
            BAD(p, "label too long");
        }
        strcpy(branch->text, parts.operands[0]);
        branch->at = p->scope.kernel->ncode;
    }
    add_instruction(p, &insn);
    p->at = end + 1;
}

static bool label(struct parser *p)
{
    char *c = p->at;
    while (is_word(*c) && *c != '.' && *c != '%') {
        c++;
    }
    char *end = c;
    while (isspace((unsigned char)*c)) {
        c++;
    }
    if (end == p->at || *c != ':') {
        return false;
    }
    if (p->nlabels == MAX_LABELS || (size_t)(end - p->at) >= sizeof p->labels[0].text) {
        BAD(p, "too many or too long labels");
    }
    struct label *label = &p->labels[p->nlabels++];
    memcpy(label->text, p->at, (size_t)(end - p->at));
    label->text[end - p->at] = '\0';
    label->at = p->scope.kernel->ncode;
    p->at = c + 1;
    return true;
}

static void resolve_branches(struct parser *p)
{
    for (size_t i = 0; i < p->nbranches; i++) {
        size_t known = 0;
        while (known < p->nlabels && strcmp(p->labels[known].text, p->branches[i].text) != 0) {
            known++;
        }
        if (known == p->nlabels) {
            BAD(p, "label %s is nowhere", p->branches[i].text);
        }
        p->scope.kernel->code[p->branches[i].at].offset = (int32_t)p->labels[known].at;
    }
}

/* ---- kernels ---- */

static void parameter(struct parser *p)
{
    struct ptx_kernel *kernel = p->scope.kernel;
    char text[128];
    char kind;
    uint32_t align = 0, bytes = 0;
    if (kernel->nparams == PTX_MAX_PARAMS) {
        BAD(p, "too many parameters");
    }
    struct ptx_param *param = &kernel->params[kernel->nparams++];
    for (;;) {
        word(p, text, sizeof text);
        if (strcmp(text, ".align") == 0) {
            align = (uint32_t)whole(p);
        } else if (text[0] != '.') {
            break;
        } else if (ptx_type_bytes(text + 1, &kind) > 0 && bytes == 0) {
            bytes = (uint32_t)ptx_type_bytes(text + 1, &kind);
        }
    }
    if (bytes == 0 || strlen(text) >= sizeof param->name) {
        BAD(p, "parameter without type or with a long name");
    }
    strcpy(param->name, text);
    align = align > bytes ? align : bytes;
    if (take(p, '[')) {
        bytes *= (uint32_t)whole(p);
        expect(p, ']');
    }
    param->offset = (kernel->params_bytes + align - 1) / align * align;
    param->bytes = bytes;
    kernel->params_bytes = param->offset + bytes;
}

static void body(struct parser *p)
{
    int depth = 1;
    char text[64];
    while (depth > 0) {
        skip_space(p);
        if (*p->at == '\0') {
            BAD(p, "'}' expected");
        } else if (*p->at == '{' || *p->at == '}') {
            depth += *p->at == '{' ? 1 : -1;
            p->at++;
        } else if (*p->at == ';') {
            p->at++;
        } else if (strncmp(p->at, ".loc", 4) == 0 || strncmp(p->at, ".pragma", 7) == 0) {
            skip_line(p);
        } else if (*p->at == '.') {
            char *before = p->at;
            word(p, text, sizeof text);
            if (strcmp(text, ".reg") != 0) {
                p->at = before;
                BAD(p, "directive not known to the simulator");
            }
            declare_registers(p);
        } else if (!label(p)) {
            instruction(p);
        }
    }
    resolve_branches(p);
    add_instruction(p, &(struct ptx_insn){.op = I_RET, .predicate = -1});
}

static void entry(struct parser *p)
{
    struct ptx_module *module = p->module;
    char text[64];
    module->kernels = sim_grow(module->kernels, module->nkernels + 1, sizeof *module->kernels);
    p->scope.kernel = &module->kernels[module->nkernels++];
    memset(p->scope.kernel, 0, sizeof *p->scope.kernel);
    p->names.n = p->nlabels = p->nbranches = 0;
    word(p, p->scope.kernel->name, sizeof p->scope.kernel->name);
    if (take(p, '(') && !take(p, ')')) {
        do {
            parameter(p);
        } while (take(p, ','));
        expect(p, ')');
    }
    while (!take(p, '{')) { /* .maxntid 1, 1, 1 and its like */
        if (*p->at == ';') {
            BAD(p, "kernel without a body");
        }
        if (!take(p, ',')) {
            word(p, text, sizeof text);
        }
    }
    body(p);
}

static void variable(struct parser *p)
{
    char text[128];
    char kind;
    size_t align = 0, bytes = 0;
    for (;;) {
        word(p, text, sizeof text);
        if (strcmp(text, ".align") == 0) {
            align = (size_t)whole(p);
        } else if (text[0] != '.') {
            break;
        } else if (bytes == 0) {
            bytes = (size_t)ptx_type_bytes(text + 1, &kind);
        }
    }
    struct ptx_variable variable = {0};
    if (bytes == 0 || strlen(text) >= sizeof variable.name) {
        BAD(p, "variable without type or with a long name");
    }
    strcpy(variable.name, text);
    align = align > bytes ? align : bytes;
    while (take(p, '[')) {
        bytes *= (size_t)whole(p);
        expect(p, ']');
    }
    (void)align; /* malloc's is enough up to 16 */
    size_t value_bytes = bytes;
    uint64_t value = 0;
    if (take(p, '=')) {
        value = (uint64_t)whole(p);
        if (value_bytes > 8) {
            BAD(p, "initial values of arrays are not known to the simulator");
        }
    }
    expect(p, ';');
    variable.bytes = bytes;
    variable.memory = sim_alloc(bytes);
    memcpy(variable.memory, &value, value_bytes <= 8 ? value_bytes : 8);
    p->module->variables =
        sim_grow(p->module->variables, p->module->nvariables + 1, sizeof variable);
    p->module->variables[p->module->nvariables++] = variable;
}

/* ---- modules ---- */

static void target(struct parser *p)
{
    char text[64];
    do {
        word(p, text, sizeof text);
        if (strncmp(text, "sm_", 3) == 0) {
            p->module->target = atoi(text + 3);
            char last = text[strlen(text) - 1];
            /* sm_90a is for exactly this architecture. */
            if (p->module->target > p->sm || (last == 'a' && p->module->target != p->sm)) {
                refuse(p, CUDA_ERROR_INVALID_PTX,
                       "SM version specified by .target is higher than "
                       "default SM version assumed");
            }
        }
    } while (take(p, ','));
    if (p->module->target == 0) {
        BAD(p, "no sm_NN in .target");
    }
    p->scope.target = p->module->target;
}

static void version(struct parser *p)
{
    char *end;
    skip_space(p);
    long major = strtol(p->at, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, &end, 10) : -1;
    if (minor < 0) {
        BAD(p, "version expected");
    }
    p->module->version = p->scope.version = (int)(major * 10 + minor);
    if (p->module->version > NEWEST_PTX) {
        refuse(p, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "PTX version too new");
    }
    p->at = end;
}

static void module(struct parser *p)
{
    char text[64];
    for (skip_space(p); *p->at != '\0'; skip_space(p)) {
        char *before = p->at;
        word(p, text, sizeof text);
        bool has_head = p->module->version != 0;
        if (strcmp(text, ".version") == 0) {
            version(p);
        } else if (!has_head) {
            p->at = before;
            BAD(p, "Missing .version directive at start of file");
        } else if (strcmp(text, ".target") == 0) {
            target(p);
        } else if (strcmp(text, ".address_size") == 0) {
            if (whole(p) != 64) {
                BAD(p, "address size must be 64");
            }
        } else if (strcmp(text, ".file") == 0) {
            skip_line(p);
        } else if (strcmp(text, ".entry") == 0 && p->module->target != 0) {
            entry(p);
        } else if (strcmp(text, ".global") == 0 && p->module->target != 0) {
            variable(p);
        } else if (strcmp(text, ".visible") != 0 && strcmp(text, ".weak") != 0) {
            p->at = before;
            BAD(p, "directive not known to the simulator");
        }
    }
    if (p->module->version == 0 || p->module->target == 0) {
        BAD(p, "no .version or no .target");
    }
}

CUresult ptx_load(const char *text, int sm, struct ptx_module **out, char *log, size_t log_bytes)
{
    struct parser *p = sim_alloc(sizeof *p);
    p->module = sim_alloc(sizeof *p->module);
    p->start = p->at = without_comments(text);
    p->log = log;
    p->log_bytes = log_bytes;
    p->sm = sm;
    p->scope.names = &p->names;
    p->scope.module = p->module;
    if (setjmp(p->give_up) == 0) {
        module(p);
        *out = p->module;
    } else {
        ptx_unload(p->module);
    }
    CUresult result = p->result;
    free(p->start);
    free(p->names.list);
    free(p);
    return result;
}
