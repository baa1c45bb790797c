// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

@_exported import OperationCore
