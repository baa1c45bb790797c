// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if defined(__linux__)

#define _GNU_SOURCE
#include "CurlDeclarations.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

OKCurlFunctions OKCurl;

static volatile int forkCount;

static void countFork(void) { forkCount++; }

int OKForkCount(void) { return forkCount; }

enum { inheritedCapacity = 256 };

/// Finds the local sockets of this process that programs started by it would inherit.
///
/// Returns their number, or -1 if there are too many or they cannot be listed.
static int findInherited(int *sockets) {
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) return -1;
    int count = 0;
    struct dirent *entry;
    while ((entry = readdir(folder)) != NULL && count <= inheritedCapacity) {
        int number = atoi(entry->d_name), domain = 0;
        socklen_t length = sizeof domain;
        int flags = fcntl(number, F_GETFD);
        if (entry->d_name[0] == '.' || flags < 0 || (flags & FD_CLOEXEC)) continue;
        if (getsockopt(number, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 || domain != AF_UNIX) continue;
        if (count < inheritedCapacity) sockets[count] = number;
        count++;
    }
    closedir(folder);
    return count <= inheritedCapacity ? count : -1;
}

static bool isAmong(const int *sockets, int count, int socket) {
    for (int index = 0; index < count; index++)
        if (sockets[index] == socket) return true;
    return false;
}

// Many versions of libcurl create a pair of local sockets for each multi handle without closing it in started programs.
// libcurl does not tell which sockets these are, so this function takes the sockets that were not there before.
OKCurlMulti *OKCurlMultiMake(void) {
    int before[inheritedCapacity], after[inheritedCapacity];
    int beforeCount = findInherited(before);
    OKCurlMulti *multi = OKCurl.multiInit();
    if (multi == NULL || beforeCount < 0) return multi;
    int afterCount = findInherited(after);
    // Another thread may have created sockets at the same moment, which must stay unchanged.
    if (afterCount - beforeCount != 2) return multi;
    for (int index = 0; index < afterCount; index++)
        if (!isAmong(before, beforeCount, after[index])) fcntl(after[index], F_SETFD, FD_CLOEXEC);
    return multi;
}

static bool find(void *library, const char *name, void **function, const char **problem) {
    *function = dlsym(library, name);
    if (*function == NULL && *problem == NULL) *problem = name;
    return *function != NULL;
}

bool OKCurlLoad(const char *file, bool mayBeLinked, const char **problem) {
    *problem = NULL;
    bool isLinked = mayBeLinked && dlsym(RTLD_DEFAULT, "curl_multi_socket_action") != NULL;
    // A program that links FoundationNetworking has loaded the library. A copy linked into the program works as well.
    void *library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL && isLinked) library = RTLD_DEFAULT;
    else if (library == NULL) library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    // RTLD_DEFAULT may also be NULL.
    if (library == NULL && !isLinked) {
        *problem = file;
        return false;
    }
    find(library, "curl_global_init", (void **)&OKCurl.globalInit, problem);
    find(library, "curl_version_info", (void **)&OKCurl.versionInfo, problem);
    find(library, "curl_easy_init", (void **)&OKCurl.easyInit, problem);
    find(library, "curl_easy_cleanup", (void **)&OKCurl.easyCleanup, problem);
    find(library, "curl_easy_setopt", (void **)&OKCurl.easySetOption, problem);
    find(library, "curl_easy_getinfo", (void **)&OKCurl.easyGetInfo, problem);
    find(library, "curl_easy_pause", (void **)&OKCurl.easyPause, problem);
    find(library, "curl_easy_strerror", (void **)&OKCurl.easyErrorText, problem);
    find(library, "curl_multi_init", (void **)&OKCurl.multiInit, problem);
    find(library, "curl_multi_cleanup", (void **)&OKCurl.multiCleanup, problem);
    find(library, "curl_multi_add_handle", (void **)&OKCurl.multiAdd, problem);
    find(library, "curl_multi_remove_handle", (void **)&OKCurl.multiRemove, problem);
    find(library, "curl_multi_setopt", (void **)&OKCurl.multiSetOption, problem);
    find(library, "curl_multi_socket_action", (void **)&OKCurl.multiAction, problem);
    find(library, "curl_multi_info_read", (void **)&OKCurl.multiReadMessage, problem);
    find(library, "curl_multi_strerror", (void **)&OKCurl.multiErrorText, problem);
    if (*problem != NULL) return false;
    pthread_atfork(NULL, NULL, countFork);
    return true;
}

#endif
