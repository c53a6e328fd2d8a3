/*
Makes one call that writes below a folder fail, or kills the process just before or after it.

The calls are those that change files: of Python, PyTorch, HDF5, SQLite and LMDB alike. They reach
the C library through addresses that the loader has put into each library's tables. `fault_arm`
puts other addresses there, so that the library needn't be loaded before the process starts: a
copy of a process that has imported everything is enough. What the C library calls itself, as
`fwrite` does, is not seen.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IS_ADDRESS(type)                                                                           \
    ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_ADDRESS(type)                                                                           \
    ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#else
#error "the tables of this processor's programs are not known here"
#endif

/* What happens at the chosen call. The order is that of `Kind` in injection.py. */
enum { NOTHING, FAIL_ONCE, FILL_DISK, KILL_BEFORE, KILL_AFTER };

/* What a call must do: the second writes a half first, if it writes, and fails from then on. */
enum { GO_ON, FAIL, HALF, GO_ON_AND_DIE };

static char folder[PATH_MAX];
static size_t folder_length;
static long chosen, num_calls;
static int kind, error_number, log_file, is_full;

static _Noreturn void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* Counts a call that changes `path`, and tells what it must do. `takes_room` if a full disk
   refuses it. */
static int judge(const char *call, const char *path, int takes_room) {
    if (strncmp(path, folder, folder_length) != 0 ||
        (path[folder_length] != '/' && path[folder_length] != 0))
        return GO_ON;
    long number = __atomic_add_fetch(&num_calls, 1, __ATOMIC_SEQ_CST);
    char line[PATH_MAX + 32];
    int length = snprintf(line, sizeof line, "%s\t%s\n", call, path + folder_length);
    if (length > 0 && write(log_file, line, (size_t)length) != length) die();
    if (number == chosen) {
        switch (kind) {
            case FAIL_ONCE:
                errno = error_number;
                return FAIL;
            case FILL_DISK:
                is_full = 1;
                errno = ENOSPC;
                return takes_room ? HALF : FAIL;
            case KILL_BEFORE:
                die();
            case KILL_AFTER:
                return GO_ON_AND_DIE;
        }
    }
    if (is_full && takes_room) {
        errno = ENOSPC;
        return FAIL;
    }
    return GO_ON;
}

static int judge_file(const char *call, int file, int takes_room) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return GO_ON;
    path[length] = 0;
    return judge(call, path, takes_room);
}

static int judge_path(const char *call, int parent, const char *path, int takes_room) {
    char whole[2 * PATH_MAX], link[64];
    if (path[0] == '/') return judge(call, path, takes_room);
    ssize_t length = -1;
    if (parent == AT_FDCWD)
        length = readlink("/proc/self/cwd", whole, PATH_MAX);
    else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", parent);
        length = readlink(link, whole, PATH_MAX);
    }
    if (length < 0) return GO_ON;
    snprintf(whole + length, sizeof whole - (size_t)length, "/%s", path);
    return judge(call, whole, takes_room);
}

#define DO(type, judged, whole, half)                                                              \
    switch (judged) {                                                                              \
        case FAIL:                                                                                 \
            return -1;                                                                             \
        case HALF: {                                                                               \
            type part = (type)(half);                                                              \
            if (part <= 0) errno = ENOSPC;                                                         \
            return part <= 0 ? -1 : part;                                                          \
        }                                                                                          \
        case GO_ON_AND_DIE:                                                                        \
            (void)!(whole);                                                                        \
            die();                                                                                 \
    }                                                                                              \
    return whole

#define NONE (-1)

static ssize_t on_write(int file, const void *from, size_t size) {
    DO(ssize_t, judge_file("write", file, 1), write(file, from, size), write(file, from, size / 2));
}

static ssize_t on_pwrite(int file, const void *from, size_t size, off_t place) {
    DO(ssize_t, judge_file("pwrite", file, 1), pwrite(file, from, size, place),
       pwrite(file, from, size / 2, place));
}

static ssize_t half_of(int file, const struct iovec *pieces, int count, off_t place) {
    struct iovec half = {pieces[0].iov_base, count > 0 ? pieces[0].iov_len / 2 : 0};
    return place < 0 ? writev(file, &half, 1) : pwritev(file, &half, 1, place);
}

static ssize_t on_writev(int file, const struct iovec *pieces, int count) {
    DO(ssize_t, judge_file("writev", file, 1), writev(file, pieces, count),
       half_of(file, pieces, count, -1));
}

static ssize_t on_pwritev(int file, const struct iovec *pieces, int count, off_t place) {
    DO(ssize_t, judge_file("pwritev", file, 1), pwritev(file, pieces, count, place),
       half_of(file, pieces, count, place));
}

static ssize_t on_pwritev2(int file, const struct iovec *pieces, int count, off_t place,
                           int flags) {
    DO(ssize_t, judge_file("pwritev2", file, 1), pwritev2(file, pieces, count, place, flags),
       half_of(file, pieces, count, place));
}

static ssize_t on_sendfile(int to, int from, off_t *place, size_t size) {
    DO(ssize_t, judge_file("sendfile", to, 1), sendfile(to, from, place, size),
       sendfile(to, from, place, size / 2));
}

static ssize_t on_copy_file_range(int from, off_t *start, int to, off_t *place, size_t size,
                                  unsigned flags) {
    DO(ssize_t, judge_file("copy_file_range", to, 1),
       copy_file_range(from, start, to, place, size, flags),
       copy_file_range(from, start, to, place, size / 2, flags));
}

static int on_ftruncate(int file, off_t size) {
    DO(int, judge_file("ftruncate", file, 1), ftruncate(file, size), NONE);
}

static int on_fsync(int file) { DO(int, judge_file("fsync", file, 1), fsync(file), NONE); }

static int on_fdatasync(int file) {
    DO(int, judge_file("fdatasync", file, 1), fdatasync(file), NONE);
}

static int on_openat(int parent, const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    if (!(flags & (O_CREAT | O_TRUNC))) return openat(parent, path, flags, mode);
    DO(int, judge_path("open", parent, path, 1), openat(parent, path, flags, mode), NONE);
}

static int on_open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    return on_openat(AT_FDCWD, path, flags, mode);
}

static int on_mkdirat(int parent, const char *path, mode_t mode) {
    DO(int, judge_path("mkdir", parent, path, 1), mkdirat(parent, path, mode), NONE);
}

static int on_mkdir(const char *path, mode_t mode) { return on_mkdirat(AT_FDCWD, path, mode); }

static int on_renameat2(int parent, const char *path, int new_parent, const char *new_path,
                        unsigned flags) {
    DO(int, judge_path("rename", new_parent, new_path, 0),
       renameat2(parent, path, new_parent, new_path, flags), NONE);
}

static int on_renameat(int parent, const char *path, int new_parent, const char *new_path) {
    return on_renameat2(parent, path, new_parent, new_path, 0);
}

static int on_rename(const char *path, const char *new_path) {
    return on_renameat2(AT_FDCWD, path, AT_FDCWD, new_path, 0);
}

static int on_linkat(int parent, const char *path, int new_parent, const char *new_path,
                     int flags) {
    DO(int, judge_path("link", new_parent, new_path, 1),
       linkat(parent, path, new_parent, new_path, flags), NONE);
}

static int on_link(const char *path, const char *new_path) {
    return on_linkat(AT_FDCWD, path, AT_FDCWD, new_path, 0);
}

static int on_unlinkat(int parent, const char *path, int flags) {
    DO(int, judge_path("unlink", parent, path, 0), unlinkat(parent, path, flags), NONE);
}

static int on_unlink(const char *path) { return on_unlinkat(AT_FDCWD, path, 0); }

static int on_rmdir(const char *path) { return on_unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

static void replace_calls(void);

/* A library that comes later has tables of its own. */
static void *on_dlopen(const char *path, int flags) {
    void *library = dlopen(path, flags);
    int before = errno;
    replace_calls();
    errno = before;
    return library;
}

static const struct {
    const char *name;
    void *address;
} CALLS[] = {
    {"write", on_write},
    {"pwrite", on_pwrite},
    {"pwrite64", on_pwrite},
    {"writev", on_writev},
    {"pwritev", on_pwritev},
    {"pwritev64", on_pwritev},
    {"pwritev2", on_pwritev2},
    {"pwritev64v2", on_pwritev2},
    {"sendfile", on_sendfile},
    {"sendfile64", on_sendfile},
    {"copy_file_range", on_copy_file_range},
    {"ftruncate", on_ftruncate},
    {"ftruncate64", on_ftruncate},
    {"fsync", on_fsync},
    {"fdatasync", on_fdatasync},
    {"open", on_open},
    {"open64", on_open},
    {"openat", on_openat},
    {"openat64", on_openat},
    {"mkdir", on_mkdir},
    {"mkdirat", on_mkdirat},
    {"rename", on_rename},
    {"renameat", on_renameat},
    {"renameat2", on_renameat2},
    {"link", on_link},
    {"linkat", on_linkat},
    {"unlink", on_unlink},
    {"unlinkat", on_unlinkat},
    {"rmdir", on_rmdir},
    {"dlopen", on_dlopen},
};

#define LONGEST 15

static void replace_in(const ElfW(Rela) * entries, size_t size, const ElfW(Sym) * symbols,
                       const char *names, ElfW(Addr) base) {
    long page = sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < size / sizeof *entries; at++) {
        if (!IS_ADDRESS(ELF64_R_TYPE(entries[at].r_info))) continue;
        const ElfW(Sym) *symbol = symbols + ELF64_R_SYM(entries[at].r_info);
        const char *name = names + symbol->st_name;
        /* Of the many entries nearly all are of other names. */
        if (symbol->st_shndx != SHN_UNDEF || strchr("cdflmoprsuw", name[0]) == NULL ||
            strlen(name) > LONGEST)
            continue;
        for (size_t call = 0; call < sizeof CALLS / sizeof *CALLS; call++) {
            if (strcmp(name, CALLS[call].name) != 0) continue;
            void **slot = (void **)(base + entries[at].r_offset);
            if (*slot == CALLS[call].address) break;
            uintptr_t first = (uintptr_t)slot / (uintptr_t)page * (uintptr_t)page;
            /* Tables may be read-only since the library was loaded. */
            if (mprotect((void *)first, (size_t)page, PROT_READ | PROT_WRITE) == 0)
                *slot = CALLS[call].address;
            break;
        }
    }
}

static int replace_in_library(struct dl_phdr_info *library, size_t size, void *own) {
    (void)size;
    const char *path = library->dlpi_name;
    if (library->dlpi_addr == (ElfW(Addr))own || strstr(path, "/libc.so") ||
        strstr(path, "/ld-linux") || strstr(path, "vdso"))
        return 0;
    for (int part = 0; part < library->dlpi_phnum; part++) {
        if (library->dlpi_phdr[part].p_type != PT_DYNAMIC) continue;
        const ElfW(Sym) *symbols = NULL;
        const char *names = NULL;
        const ElfW(Rela) * tables[2] = {NULL, NULL};
        size_t sizes[2] = {0, 0};
        const ElfW(Dyn) *entry =
            (const ElfW(Dyn) *)(library->dlpi_addr + library->dlpi_phdr[part].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            switch (entry->d_tag) {
                case DT_SYMTAB:
                    symbols = (const ElfW(Sym) *)entry->d_un.d_ptr;
                    break;
                case DT_STRTAB:
                    names = (const char *)entry->d_un.d_ptr;
                    break;
                case DT_RELA:
                    tables[0] = (const ElfW(Rela) *)entry->d_un.d_ptr;
                    break;
                case DT_RELASZ:
                    sizes[0] = entry->d_un.d_val;
                    break;
                case DT_JMPREL:
                    tables[1] = (const ElfW(Rela) *)entry->d_un.d_ptr;
                    break;
                case DT_PLTRELSZ:
                    sizes[1] = entry->d_un.d_val;
                    break;
            }
        }
        for (int table = 0; table < 2; table++)
            if (symbols && names && tables[table])
                replace_in(tables[table], sizes[table], symbols, names, library->dlpi_addr);
    }
    return 0;
}

static void replace_calls(void) {
    Dl_info own;
    if (dladdr((void *)replace_calls, &own)) dl_iterate_phdr(replace_in_library, own.dli_fbase);
}

/*
From now on calls that change files below `below` are counted, and each is a line of the open file
`log`. The call of the number `number`, from 1 on, has the fault `fault`, with `error` as its errno
where it fails once.
*/
void fault_arm(const char *below, long number, int fault, int error, int log) {
    snprintf(folder, sizeof folder, "%s", below);
    folder_length = strlen(folder);
    chosen = number;
    kind = fault;
    error_number = error;
    log_file = log;
    num_calls = 0;
    is_full = 0;
    replace_calls();
}
