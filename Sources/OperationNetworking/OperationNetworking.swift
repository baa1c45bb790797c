// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

@_exported import OperationCore
