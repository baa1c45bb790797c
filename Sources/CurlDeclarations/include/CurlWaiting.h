// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// Functions that Swift's module of the C library lacks. They wait for many sockets, wake the waiting thread, and
// describe the environment of that thread.

#ifndef OPERATIONKIT_CURL_WAITING_H
#define OPERATIONKIT_CURL_WAITING_H

#if defined(__linux__)

#include <stdbool.h>
#include <stdint.h>

enum { OKPollIn = 1, OKPollOut = 4, OKPollError = 8, OKPollHangUp = 16 };

typedef struct {
    int socket;
    unsigned int mask;
} OKPollEvent;

/// Creates an object to wait with, or returns -1 if there is no descriptor left.
///
/// The object watches a counter of `OKBellMake`, and reports each increase once, so that no thread has to read the
/// counter. Programs that this process starts do not inherit the object.
int OKPollMake(int bell);

/// Watches a socket for the events in `mask`, or stops watching it if `mask` is 0.
///
/// `isWatched` says whether the socket is already watched.
void OKPollWatch(int poll, int socket, unsigned int mask, bool isWatched);

/// Waits for at most `milliseconds`, or indefinitely if it is -1, and returns the number of events.
int OKPollWait(int poll, OKPollEvent *events, int capacity, int milliseconds);

/// Creates a counter that can be waited for.
int OKBellMake(void);

/// Returns the local port of an IPv4 or IPv6 socket, or 0 if there is none.
uint16_t OKLocalPort(int socket);

/// Returns whether the other side closed a connection, even if bytes wait to be read, or whether the connection broke.
bool OKIsClosed(int socket);

/// Names the calling thread.
void OKThreadSetName(const char *name);

/// Returns a number that is increased in each child process that a fork creates.
int OKForkCount(void);

#endif
#endif
