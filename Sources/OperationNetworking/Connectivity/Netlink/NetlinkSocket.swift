// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationCore

    /// A socket to the part of the kernel that knows the network: never blocking, and not inherited by other programs.
    ///
    /// Swift's module for the system leaves out what belongs to netlink; the numbers are the kernel's, which do not
    /// change.
    struct NetlinkSocket: Sendable {
        enum Received {
            case datagram(Int)
            /// It came from somebody else than the kernel, and is not to be believed.
            case foreign
            case nothing
            /// Messages were lost for want of room.
            case overrun
            case failed(Int32)
        }

        /// `struct sockaddr_nl`.
        private struct Address {
            var family: UInt16 = 16
            var padding: UInt16 = 0
            var port: UInt32 = 0
            var groups: UInt32 = 0

            static let size = socklen_t(12)
        }

        let descriptor: Int32
        /// Who we are to the kernel.
        let port: UInt32

        /// Opens one that is told of changes of links, addresses and routes.
        ///
        /// - Parameter receiveBufferSize: For tests: how much may wait in it; as much as is usual if nil.
        static func open(receiveBufferSize: Int32? = nil) throws(SystemError) -> NetlinkSocket {
            // SOCK_RAW, SOCK_CLOEXEC and SOCK_NONBLOCK.
            let descriptor = socket(16, 3 | 0o2_000_000 | 0o4_000, 0)
            guard descriptor >= 0 else { throw SystemError(errno) }
            if var size = receiveBufferSize {
                _ = setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
            }
            do throws(SystemError) {
                return NetlinkSocket(descriptor: descriptor, port: try join(descriptor))
            } catch {
                Foundation.close(descriptor)
                throw error
            }
        }

        /// Joins the groups, and returns the port that the kernel gave.
        private static func join(_ descriptor: Int32) throws(SystemError) -> UInt32 {
            // Links, addresses and routes of IPv4 and of IPv6.
            var address = Address(groups: 0x1 | 0x10 | 0x40 | 0x100 | 0x400)
            var size = Address.size
            let code = withUnsafeMutableBytes(of: &address) { bytes -> Int32 in
                let place = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self)
                return bind(descriptor, place, size) == 0 ? getsockname(descriptor, place, &size) : -1
            }
            guard code == 0 else { throw SystemError(errno) }
            return address.port
        }

        /// Sends a request; nil if that went well.
        func send(_ request: [UInt8]) -> SystemError? {
            var address = Address()
            let count = withUnsafeMutableBytes(of: &address) { place in
                request.withUnsafeBytes { bytes in
                    sendto(
                        descriptor, bytes.baseAddress, bytes.count, 0,
                        place.baseAddress?.assumingMemoryBound(to: sockaddr.self), Address.size)
                }
            }
            return count == request.count ? nil : SystemError(count < 0 ? errno : EMSGSIZE)
        }

        func receive(into buffer: UnsafeMutableRawBufferPointer) -> Received {
            var (address, size) = (Address(), Address.size)
            while true {
                // The length that it really has, also where there is no room for it.
                let count = withUnsafeMutableBytes(of: &address) { place in
                    recvfrom(
                        descriptor, buffer.baseAddress, buffer.count, Int32(MSG_TRUNC),
                        place.baseAddress?.assumingMemoryBound(to: sockaddr.self), &size)
                }
                if count >= 0 {
                    guard size == Address.size, address.port == 0 else { return .foreign }
                    return count <= buffer.count ? .datagram(count) : .overrun
                }
                switch errno {
                case EINTR: continue
                case EAGAIN: return .nothing
                case ENOBUFS: return .overrun
                default: return .failed(errno)
                }
            }
        }

        func close() { Foundation.close(descriptor) }
    }
#endif
