// The part of Darwin's C library that the package uses, according to the manual pages. Swift imports functions without nullability with
// implicitly unwrapped optionals, as it does for Apple's headers.
#ifndef OPERATIONKIT_DARWIN_H
#define OPERATIONKIT_DARWIN_H

#include <stddef.h>
#include <stdarg.h>

// Attributes for an API that exists only on some platforms.
// https://developer.apple.com/documentation/swift/marking-api-availability-in-objective-c
#define OP_NOT_FOR_MOBILE \
    __attribute__((availability(ios, unavailable))) __attribute__((availability(tvos, unavailable))) \
    __attribute__((availability(watchos, unavailable))) __attribute__((availability(xros, unavailable)))
#define OP_NOT_FOR_TV_AND_WATCH \
    __attribute__((availability(tvos, unavailable))) __attribute__((availability(watchos, unavailable)))
#define OP_NOT_FOR_SWIFT(text) __attribute__((availability(swift, unavailable, message = text)))

// Types
// https://developer.apple.com/documentation/kernel/basic_data_types
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef long ssize_t;
typedef unsigned char u_char;
typedef unsigned short u_short;
typedef unsigned int u_int;
typedef unsigned long u_long;
typedef int32_t dev_t;
typedef uint64_t ino_t;
typedef uint16_t mode_t;
typedef uint16_t nlink_t;
typedef uint32_t uid_t;
typedef uint32_t gid_t;
typedef int32_t pid_t;
typedef uint32_t id_t;
typedef int64_t off_t;
typedef long time_t;
typedef int32_t suseconds_t;
typedef uint32_t useconds_t;
typedef unsigned long clock_t;
typedef int64_t blkcnt_t;
typedef int32_t blksize_t;
typedef uint32_t socklen_t;
typedef uint8_t sa_family_t;
typedef uint16_t in_port_t;
typedef uint32_t in_addr_t;
typedef unsigned int nfds_t;
typedef uint64_t rlim_t;
typedef uint32_t sigset_t;
typedef unsigned char Boolean;
typedef uint32_t UInt32;
typedef int32_t OSStatus;

// Errors
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/intro.2.html
extern int *__error(void);
#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define EINTR 4
#define EIO 5
#define ENXIO 6
#define E2BIG 7
#define ENOEXEC 8
#define EBADF 9
#define ECHILD 10
#define EDEADLK 11
#define ENOMEM 12
#define EACCES 13
#define EFAULT 14
#define ENOTBLK 15
#define EBUSY 16
#define EEXIST 17
#define EXDEV 18
#define ENODEV 19
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22
#define ENFILE 23
#define EMFILE 24
#define ENOTTY 25
#define ETXTBSY 26
#define EFBIG 27
#define ENOSPC 28
#define ESPIPE 29
#define EROFS 30
#define EMLINK 31
#define EPIPE 32
#define EDOM 33
#define ERANGE 34
#define EAGAIN 35
#define EWOULDBLOCK EAGAIN
#define EINPROGRESS 36
#define EALREADY 37
#define ENOTSOCK 38
#define EDESTADDRREQ 39
#define EMSGSIZE 40
#define EPROTOTYPE 41
#define ENOPROTOOPT 42
#define EPROTONOSUPPORT 43
#define ENOTSUP 45
#define EAFNOSUPPORT 47
#define EADDRINUSE 48
#define EADDRNOTAVAIL 49
#define ENETDOWN 50
#define ENETUNREACH 51
#define ENETRESET 52
#define ECONNABORTED 53
#define ECONNRESET 54
#define ENOBUFS 55
#define EISCONN 56
#define ENOTCONN 57
#define ETIMEDOUT 60
#define ECONNREFUSED 61
#define ELOOP 62
#define ENAMETOOLONG 63
#define EHOSTDOWN 64
#define EHOSTUNREACH 65
#define ENOTEMPTY 66
#define EDQUOT 69
#define ESTALE 70
#define ENOLCK 77
#define ENOSYS 78
#define EOVERFLOW 84
#define ECANCELED 89
#define ENOATTR 93
#define ENODATA 96
#define EOPNOTSUPP 102

// Time
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/clock_gettime.3.html
struct timespec {
    time_t tv_sec;
    long tv_nsec;
};
struct timeval {
    time_t tv_sec;
    suseconds_t tv_usec;
};
struct timezone {
    int tz_minuteswest;
    int tz_dsttime;
};
struct tm {
    int tm_sec;
    int tm_min;
    int tm_hour;
    int tm_mday;
    int tm_mon;
    int tm_year;
    int tm_wday;
    int tm_yday;
    int tm_isdst;
    long tm_gmtoff;
    char *tm_zone;
};
typedef enum {
    _CLOCK_REALTIME = 0,
    _CLOCK_MONOTONIC = 6,
    _CLOCK_MONOTONIC_RAW = 4,
    _CLOCK_MONOTONIC_RAW_APPROX = 5,
    _CLOCK_UPTIME_RAW = 8,
    _CLOCK_UPTIME_RAW_APPROX = 9,
    _CLOCK_PROCESS_CPUTIME_ID = 12,
    _CLOCK_THREAD_CPUTIME_ID = 16,
} clockid_t;
extern int clock_gettime(clockid_t clock, struct timespec *time);
extern uint64_t clock_gettime_nsec_np(clockid_t clock);
extern time_t time(time_t *);
extern int gettimeofday(struct timeval *, void *);
extern struct tm *gmtime_r(const time_t *, struct tm *);
extern struct tm *localtime_r(const time_t *, struct tm *);
extern time_t timegm(struct tm *const);
extern time_t mktime(struct tm *);
extern int nanosleep(const struct timespec *, struct timespec *);

// Files
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/open.2.html
#define O_RDONLY 0x0000
#define O_WRONLY 0x0001
#define O_RDWR 0x0002
#define O_NONBLOCK 0x0004
#define O_APPEND 0x0008
#define O_NOFOLLOW 0x0100
#define O_CREAT 0x0200
#define O_TRUNC 0x0400
#define O_EXCL 0x0800
#define O_NOCTTY 0x00020000
#define O_DIRECTORY 0x00100000
#define O_CLOEXEC 0x01000000
extern int open(const char *, int, ...);
extern int openat(int, const char *, int, ...);
extern int close(int);
extern ssize_t read(int, void *, size_t);
extern ssize_t write(int, const void *, size_t);
extern ssize_t pread(int, void *, size_t, off_t);
extern ssize_t pwrite(int, const void *, size_t, off_t);
extern off_t lseek(int, off_t, int);
extern int dup(int);
extern int dup2(int, int);
extern int pipe(int[2]);
extern int isatty(int);
extern char *ttyname(int);
extern int getpagesize(void);
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/fcntl.2.html
#define F_DUPFD 0
#define F_GETFD 1
#define F_SETFD 2
#define F_GETFL 3
#define F_SETFL 4
#define F_FULLFSYNC 51
#define F_GETPATH 50
#define F_SETNOSIGPIPE 73
#define FD_CLOEXEC 1
extern int fcntl(int, int, ...);
extern int fsync(int);
extern int ftruncate(int, off_t);
extern int truncate(const char *, off_t);
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/flock.2.html
#define LOCK_SH 0x01
#define LOCK_EX 0x02
#define LOCK_NB 0x04
#define LOCK_UN 0x08
extern int flock(int, int);
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/stat.2.html
struct stat {
    dev_t st_dev;
    mode_t st_mode;
    nlink_t st_nlink;
    ino_t st_ino;
    uid_t st_uid;
    gid_t st_gid;
    dev_t st_rdev;
    struct timespec st_atimespec;
    struct timespec st_mtimespec;
    struct timespec st_ctimespec;
    struct timespec st_birthtimespec;
    off_t st_size;
    blkcnt_t st_blocks;
    blksize_t st_blksize;
    uint32_t st_flags;
    uint32_t st_gen;
    int32_t st_lspare;
    int64_t st_qspare[2];
};
extern int stat(const char *, struct stat *);
extern int lstat(const char *, struct stat *);
extern int fstat(int, struct stat *);
extern int fstatat(int, const char *, struct stat *, int);
extern int chmod(const char *, mode_t);
extern int fchmod(int, mode_t);
extern int chown(const char *, uid_t, gid_t);
extern int lchown(const char *, uid_t, gid_t);
extern int fchown(int, uid_t, gid_t);
extern mode_t umask(mode_t);
extern int mkdir(const char *, mode_t);
extern int mkdirat(int, const char *, mode_t);
extern int mkfifo(const char *, mode_t);
extern int mknod(const char *, mode_t, dev_t);
extern int utimensat(int, const char *, const struct timespec[2], int);
extern int futimens(int, const struct timespec[2]);
#define UTIME_NOW -1
#define UTIME_OMIT -2
#define AT_FDCWD -2
#define AT_SYMLINK_NOFOLLOW 0x0020
#define AT_SYMLINK_FOLLOW 0x0040
#define AT_REMOVEDIR 0x0080
extern int link(const char *, const char *);
extern int linkat(int, const char *, int, const char *, int);
extern int symlink(const char *, const char *);
extern int symlinkat(const char *, int, const char *);
extern ssize_t readlink(const char *, char *, size_t);
extern ssize_t readlinkat(int, const char *, char *, size_t);
extern int unlink(const char *);
extern int unlinkat(int, const char *, int);
extern int rmdir(const char *);
extern int rename(const char *, const char *);
extern int renameat(int, const char *, int, const char *);
extern int access(const char *, int);
#define F_OK 0
#define X_OK (1 << 0)
#define W_OK (1 << 1)
#define R_OK (1 << 2)
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/rename.2.html
#define RENAME_SWAP 0x00000002
#define RENAME_EXCL 0x00000004
extern int renameatx_np(int, const char *, int, const char *, unsigned int);
extern int renamex_np(const char *, const char *, unsigned int);
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/statfs.2.html
typedef struct fsid {
    int32_t val[2];
} fsid_t;
struct statfs {
    uint32_t f_bsize;
    int32_t f_iosize;
    uint64_t f_blocks;
    uint64_t f_bfree;
    uint64_t f_bavail;
    uint64_t f_files;
    uint64_t f_ffree;
    fsid_t f_fsid;
    uid_t f_owner;
    uint32_t f_type;
    uint32_t f_flags;
    uint32_t f_fssubtype;
    char f_fstypename[16];
    char f_mntonname[1024];
    char f_mntfromname[1024];
    uint32_t f_flags_ext;
    uint32_t f_reserved[7];
};
extern int statfs(const char *, struct statfs *);
extern int fstatfs(int, struct statfs *);
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/directory.3.html
struct dirent {
    uint64_t d_ino;
    uint64_t d_seekoff;
    uint16_t d_reclen;
    uint16_t d_namlen;
    uint8_t d_type;
    char d_name[1024];
};
typedef struct {
    int __dd_fd;
    long __dd_loc;
    long __dd_size;
    char *__dd_buf;
    int __dd_len;
    long __dd_seek;
    int __dd_flags;
    void *__dd_td;
} DIR;
extern DIR *opendir(const char *);
extern DIR *fdopendir(int);
extern struct dirent *readdir(DIR *);
extern int closedir(DIR *);
extern int dirfd(DIR *);
#define DT_UNKNOWN 0
#define DT_DIR 4
#define DT_REG 8
#define DT_LNK 10
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/mmap.2.html
#define PROT_NONE 0x00
#define PROT_READ 0x01
#define PROT_WRITE 0x02
#define MAP_SHARED 0x0001
#define MAP_PRIVATE 0x0002
#define MAP_ANON 0x1000
extern void *mmap(void *, size_t, int, int, int, off_t);
extern int munmap(void *, size_t);
extern int msync(void *, size_t, int);

// Standard input and output
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/stdio.3.html
typedef struct __sFILE {
    unsigned char *_p;
    int _r;
    int _w;
    short _flags;
    short _file;
} FILE;
#define EOF (-1)
#define BUFSIZ 1024
#define _IOFBF 0
#define _IOLBF 1
#define _IONBF 2
extern FILE *fopen(const char *, const char *);
extern FILE *fdopen(int, const char *);
extern int fclose(FILE *);
extern int fflush(FILE *);
extern int fputs(const char *, FILE *);
extern int fputc(int, FILE *);
extern int puts(const char *);
extern int putchar(int);
extern char *fgets(char *, int, FILE *);
extern size_t fread(void *, size_t, size_t, FILE *);
extern size_t fwrite(const void *, size_t, size_t, FILE *);
extern int setvbuf(FILE *, char *, int, size_t);
extern void setlinebuf(FILE *) ;
extern int fileno(FILE *);
extern int ferror(FILE *);
extern int feof(FILE *);
extern int remove(const char *);
extern void perror(const char *);
extern FILE *popen(const char *, const char *) OP_NOT_FOR_SWIFT("Use posix_spawn APIs or NSTask instead.");
extern int pclose(FILE *);

// Memory and text
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/string.3.html
extern void *memchr(const void *, int, size_t);
extern int memcmp(const void *, const void *, size_t);
extern void *memcpy(void *, const void *, size_t);
extern void *memmove(void *, const void *, size_t);
extern void *memset(void *, int, size_t);
extern void *memmem(const void *, size_t, const void *, size_t);
extern size_t strlen(const char *);
extern size_t strnlen(const char *, size_t);
extern int strcmp(const char *, const char *);
extern int strncmp(const char *, const char *, size_t);
extern int strcasecmp(const char *, const char *);
extern char *strdup(const char *);
extern char *strerror(int);
extern int strerror_r(int, char *, size_t);
extern char *strchr(const char *, int);
extern double strtod(const char *, char **);
extern long strtol(const char *, char **, int);
extern void *malloc(size_t);
extern void *calloc(size_t, size_t);
extern void *realloc(void *, size_t);
extern void free(void *);
extern int posix_memalign(void **, size_t, size_t);
extern char *getenv(const char *);
extern int setenv(const char *, const char *, int);
extern int unsetenv(const char *);
extern int atexit(void (*_Nonnull)(void));
extern void exit(int) __attribute__((noreturn));
extern void _exit(int) __attribute__((noreturn));
extern void abort(void) __attribute__((noreturn));
extern int abs(int);
extern uint32_t arc4random(void);
extern uint32_t arc4random_uniform(uint32_t);
extern void arc4random_buf(void *, size_t);
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
extern int mkstemp(char *);
extern char *mkdtemp(char *);
extern char *realpath(const char *, char *);
extern char *getcwd(char *, size_t);
extern int chdir(const char *);

// Mathematics
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/math.3.html
extern double exp(double);
extern double exp2(double);
extern double expm1(double);
extern double log(double);
extern double log2(double);
extern double log10(double);
extern double log1p(double);
extern double pow(double, double);
extern double cos(double);
extern double sin(double);
extern double tan(double);
extern double atan(double);
extern double atan2(double, double);
extern double tanh(double);
extern double cbrt(double);
extern double hypot(double, double);
extern double erf(double);
#define INT_MAX 2147483647
#define INT32_MAX 2147483647
#define PATH_MAX 1024
#define NAME_MAX 255
#define IOV_MAX 1024

// Threads
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/pthread.3.html
#pragma clang assume_nonnull begin
struct _opaque_pthread_t {
    long __sig;
    void *__cleanup_stack;
    char __opaque[8176];
};
struct _opaque_pthread_attr_t {
    long __sig;
    char __opaque[56];
};
struct _opaque_pthread_mutex_t {
    long __sig;
    char __opaque[56];
};
struct _opaque_pthread_mutexattr_t {
    long __sig;
    char __opaque[8];
};
struct _opaque_pthread_cond_t {
    long __sig;
    char __opaque[40];
};
struct _opaque_pthread_condattr_t {
    long __sig;
    char __opaque[8];
};
struct _opaque_pthread_rwlock_t {
    long __sig;
    char __opaque[192];
};
typedef struct _opaque_pthread_t *pthread_t;
typedef struct _opaque_pthread_attr_t pthread_attr_t;
typedef struct _opaque_pthread_mutex_t pthread_mutex_t;
typedef struct _opaque_pthread_mutexattr_t pthread_mutexattr_t;
typedef struct _opaque_pthread_cond_t pthread_cond_t;
typedef struct _opaque_pthread_condattr_t pthread_condattr_t;
typedef struct _opaque_pthread_rwlock_t pthread_rwlock_t;
typedef unsigned long pthread_key_t;
extern pthread_t pthread_self(void);
extern int pthread_equal(pthread_t _Nullable, pthread_t _Nullable);
extern int pthread_main_np(void);
extern int pthread_threadid_np(pthread_t _Nullable, uint64_t *_Nullable);
extern int pthread_create(
    pthread_t _Nullable *_Nonnull, const pthread_attr_t *_Nullable, void *_Nullable (*_Nonnull)(void *_Nonnull),
    void *_Nullable);
extern int pthread_join(pthread_t, void *_Nullable *_Nullable);
extern int pthread_detach(pthread_t);
extern int pthread_key_create(pthread_key_t *, void (*_Nullable)(void *));
extern int pthread_key_delete(pthread_key_t);
extern void *_Nullable pthread_getspecific(pthread_key_t);
extern int pthread_setspecific(pthread_key_t, const void *_Nullable);
extern int pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *_Nullable);
extern int pthread_mutex_destroy(pthread_mutex_t *);
extern int pthread_mutex_lock(pthread_mutex_t *);
extern int pthread_mutex_trylock(pthread_mutex_t *);
extern int pthread_mutex_unlock(pthread_mutex_t *);
extern int pthread_setname_np(const char *);
extern size_t pthread_get_stacksize_np(pthread_t);
extern void *pthread_get_stackaddr_np(pthread_t);
extern int pthread_attr_init(pthread_attr_t *);
extern int pthread_attr_destroy(pthread_attr_t *);
extern int pthread_attr_setstacksize(pthread_attr_t *, size_t);
#pragma clang assume_nonnull end
extern int pthread_sigmask(int, const sigset_t *_Nullable, sigset_t *_Nullable);
extern int sched_yield(void);
// https://developer.apple.com/documentation/dispatch/dispatchqos/qosclass
typedef enum : unsigned int {
    QOS_CLASS_USER_INTERACTIVE = 0x21,
    QOS_CLASS_USER_INITIATED = 0x19,
    QOS_CLASS_DEFAULT = 0x15,
    QOS_CLASS_UTILITY = 0x11,
    QOS_CLASS_BACKGROUND = 0x09,
    QOS_CLASS_UNSPECIFIED = 0x00,
} qos_class_t;
// The manual page pthread_set_qos_class_self_np(3) and the header say only that the function changes the calling thread.
extern int pthread_set_qos_class_self_np(qos_class_t, int);

// Processes
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/intro.2.html
extern pid_t getpid(void);
extern pid_t getppid(void);
extern uid_t getuid(void);
extern uid_t geteuid(void);
extern gid_t getgid(void);
extern gid_t getegid(void);
extern pid_t fork(void) OP_NOT_FOR_TV_AND_WATCH OP_NOT_FOR_SWIFT("Please use threads or posix_spawn*()");
extern pid_t waitpid(pid_t, int *, int);
extern pid_t wait(int *);
extern int kill(pid_t, int);
extern int raise(int);
extern unsigned int alarm(unsigned int);
extern unsigned int sleep(unsigned int);
extern int usleep(useconds_t);
extern int pause(void);
#define WNOHANG 0x00000001
typedef void *posix_spawnattr_t;
typedef void *posix_spawn_file_actions_t;
extern int posix_spawn(
    pid_t *_Nullable, const char *_Nonnull, const posix_spawn_file_actions_t _Nullable *_Nullable,
    const posix_spawnattr_t _Nullable *_Nullable, char *const _Nullable argv[_Nonnull], char *const _Nullable envp[_Nullable])
    OP_NOT_FOR_TV_AND_WATCH;
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/getrusage.2.html
struct rusage {
    struct timeval ru_utime;
    struct timeval ru_stime;
    long ru_maxrss;
    long ru_ixrss;
    long ru_idrss;
    long ru_isrss;
    long ru_minflt;
    long ru_majflt;
    long ru_nswap;
    long ru_inblock;
    long ru_oublock;
    long ru_msgsnd;
    long ru_msgrcv;
    long ru_nsignals;
    long ru_nvcsw;
    long ru_nivcsw;
};
struct rlimit {
    rlim_t rlim_cur;
    rlim_t rlim_max;
};
#define RUSAGE_SELF 0
#define RUSAGE_CHILDREN -1
#define RLIMIT_NOFILE 8
#define OPEN_MAX 10240
extern int getrusage(int, struct rusage *);
extern int getrlimit(int, struct rlimit *);
extern int setrlimit(int, const struct rlimit *);
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/sysctl.3.html
extern int sysctlbyname(const char *, void *, size_t *, void *, size_t);
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/dlsym.3.html
extern void *dlopen(const char *, int);
extern void *dlsym(void *, const char *);
extern int dlclose(void *);
extern char *dlerror(void);
#define RTLD_LAZY 0x1
#define RTLD_NOW 0x2

// Signals
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/sigaction.2.html
#define SIGHUP 1
#define SIGINT 2
#define SIGQUIT 3
#define SIGILL 4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGFPE 8
#define SIGKILL 9
#define SIGBUS 10
#define SIGSEGV 11
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTERM 15
#define SIGSTOP 17
#define SIGTSTP 18
#define SIGCONT 19
#define SIGCHLD 20
#define SIGXFSZ 25
#define SIGWINCH 28
#define SIGUSR1 30
#define SIGUSR2 31
#define SIG_BLOCK 1
#define SIG_UNBLOCK 2
#define SIG_SETMASK 3
#define SA_RESTART 0x0002
typedef void (*sig_t)(int);
typedef struct __siginfo {
    int si_signo;
    int si_errno;
    int si_code;
    pid_t si_pid;
    uid_t si_uid;
    int si_status;
    void *si_addr;
} siginfo_t;
union __sigaction_u {
    void (*__sa_handler)(int);
    void (*__sa_sigaction)(int, struct __siginfo *, void *);
};
struct sigaction {
    union __sigaction_u __sigaction_u;
    sigset_t sa_mask;
    int sa_flags;
};
extern sig_t signal(int, sig_t);
extern int sigaction(int, const struct sigaction *, struct sigaction *);
extern int sigemptyset(sigset_t *);
extern int sigfillset(sigset_t *);
extern int sigaddset(sigset_t *, int);
extern int sigwait(const sigset_t *, int *);

// Sockets
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/socket.2.html
#define AF_UNSPEC 0
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 30
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOL_SOCKET 0xffff
#define SO_REUSEADDR 0x0004
#define SO_KEEPALIVE 0x0008
#define SO_LINGER 0x0080
#define SO_REUSEPORT 0x0200
#define SO_SNDBUF 0x1001
#define SO_RCVBUF 0x1002
#define SO_SNDTIMEO 0x1005
#define SO_RCVTIMEO 0x1006
#define SO_ERROR 0x1007
#define SO_NOSIGPIPE 0x1022
#define SHUT_RD 0
#define SHUT_WR 1
#define SHUT_RDWR 2
#define MSG_PEEK 0x2
#define MSG_DONTWAIT 0x80
#define MSG_NOSIGNAL 0x80000
#define SOMAXCONN 128
#define IPPROTO_IP 0
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_IPV6 41
#define IPV6_V6ONLY 27
#define TCP_NODELAY 0x01
#define TCP_KEEPALIVE 0x10
#define TCP_KEEPINTVL 0x101
#define TCP_KEEPCNT 0x102
#define INET_ADDRSTRLEN 16
#define INET6_ADDRSTRLEN 46
#define INADDR_ANY ((in_addr_t)0x00000000)
#define INADDR_LOOPBACK ((in_addr_t)0x7f000001)
struct sockaddr {
    uint8_t sa_len;
    sa_family_t sa_family;
    char sa_data[14];
};
struct sockaddr_storage {
    uint8_t ss_len;
    sa_family_t ss_family;
    char __ss_pad1[6];
    int64_t __ss_align;
    char __ss_pad2[112];
};
struct in_addr {
    in_addr_t s_addr;
};
struct sockaddr_in {
    uint8_t sin_len;
    sa_family_t sin_family;
    in_port_t sin_port;
    struct in_addr sin_addr;
    char sin_zero[8];
};
struct in6_addr {
    union {
        uint8_t __u6_addr8[16];
        uint16_t __u6_addr16[8];
        uint32_t __u6_addr32[4];
    } __u6_addr;
};
extern const struct in6_addr in6addr_any;
extern const struct in6_addr in6addr_loopback;
struct sockaddr_in6 {
    uint8_t sin6_len;
    sa_family_t sin6_family;
    in_port_t sin6_port;
    uint32_t sin6_flowinfo;
    struct in6_addr sin6_addr;
    uint32_t sin6_scope_id;
};
struct sockaddr_un {
    unsigned char sun_len;
    sa_family_t sun_family;
    char sun_path[104];
};
struct linger {
    int l_onoff;
    int l_linger;
};
struct iovec {
    void *iov_base;
    size_t iov_len;
};
extern int socket(int, int, int);
extern int socketpair(int, int, int, int *);
extern int bind(int, const struct sockaddr *, socklen_t);
extern int listen(int, int);
extern int accept(int, struct sockaddr *, socklen_t *);
extern int connect(int, const struct sockaddr *, socklen_t);
extern int shutdown(int, int);
extern int getsockname(int, struct sockaddr *, socklen_t *);
extern int getpeername(int, struct sockaddr *, socklen_t *);
extern int getsockopt(int, int, int, void *, socklen_t *);
extern int setsockopt(int, int, int, const void *, socklen_t);
extern ssize_t send(int, const void *, size_t, int);
extern ssize_t sendto(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
extern ssize_t recv(int, void *, size_t, int);
extern ssize_t recvfrom(int, void *, size_t, int, struct sockaddr *, socklen_t *);
extern in_addr_t inet_addr(const char *);
extern int inet_pton(int, const char *, void *);
extern const char *inet_ntop(int, const void *, char *, socklen_t);
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/poll.2.html
struct pollfd {
    int fd;
    short events;
    short revents;
};
#define POLLIN 0x0001
#define POLLOUT 0x0004
#define POLLERR 0x0008
#define POLLHUP 0x0010
#define POLLNVAL 0x0020
extern int poll(struct pollfd *, nfds_t, int);

// Terminals
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man4/termios.4.html
typedef unsigned long tcflag_t;
typedef unsigned char cc_t;
typedef unsigned long speed_t;
struct termios {
    tcflag_t c_iflag;
    tcflag_t c_oflag;
    tcflag_t c_cflag;
    tcflag_t c_lflag;
    cc_t c_cc[20];
    speed_t c_ispeed;
    speed_t c_ospeed;
};
struct winsize {
    unsigned short ws_row;
    unsigned short ws_col;
    unsigned short ws_xpixel;
    unsigned short ws_ypixel;
};
#define ECHO 0x00000008
#define ICANON 0x00000100
#define ISIG 0x00000080
#define VMIN 16
#define VTIME 17
#define TCSANOW 0
#define TCSADRAIN 1
#define TCSAFLUSH 2
extern int tcgetattr(int, struct termios *);
extern int tcsetattr(int, int, const struct termios *);
extern void cfmakeraw(struct termios *);
extern int ioctl(int, unsigned long, ...);
// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/openpty.3.html
extern int openpty(int *, int *, char *, struct termios *, struct winsize *);

// Mach
// https://developer.apple.com/documentation/kernel/mach
typedef int kern_return_t;
typedef unsigned int mach_port_t;
typedef unsigned int natural_t;
extern uint64_t mach_absolute_time(void);
extern uint64_t mach_continuous_time(void);
#define KERN_SUCCESS 0

#endif
