// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    /// Another address for a host and a port, each of which may be empty and then stands for all.
    struct AddressOverride {
        /// As libcurl takes it: both places with a colon between them.
        let line: String
        private let generality: Int

        private init(_ place: String, _ target: String) {
            line = "\(Self.normalized(place)):\(target)"
            // A host counts for more than a port.
            generality = (place.hasPrefix(":") ? 2 : 0) + (place.hasSuffix(":") ? 1 : 0)
        }

        /// Returns a host and a port with the host in the one form that hosts of requests have.
        private static func normalized(_ place: String) -> String {
            guard let colon = place.lastIndex(of: ":"),
                let authority = try? URLAuthority(String(place[..<colon]), writtenBy: .user),
                authority.userInformation == nil, authority.port == nil
            else { return place }
            return authority.host + place[colon...]
        }

        /// Those of a configuration, the more definite ones first, for the first that fits counts.
        static func inOrder(_ overrides: [String: String]) -> [AddressOverride] {
            overrides.map { AddressOverride($0.key, $0.value) }
                .sorted { ($0.generality, $0.line) < ($1.generality, $1.line) }
        }

        /// What stands in for a host and a port; nil if it is not about them, or names nothing.
        func target(of host: String, port: Int) -> (host: String?, port: Int?)? {
            guard let rest = line[...].after(host.contains(":") ? "[\(host)]" : host)?.after("\(port)") else {
                return nil
            }
            let target = HostAndPort(rest)
            guard !target.host.isEmpty || target.port != nil else { return nil }
            return (target.host.isEmpty ? nil : target.host, target.port)
        }
    }

    extension Substring {
        /// What comes after a word, or nothing, and a colon; nil if it begins with something else.
        fileprivate func after(_ word: String) -> Substring? {
            if first == ":" { return dropFirst() }
            guard lowercased().hasPrefix("\(word):") else { return nil }
            return dropFirst(word.count + 1)
        }
    }
#endif
