/// The stored content that one message makes the node read. It is charged to its registrants before it is read; the first bytes are free, because the
/// limits of messages cover them.
package struct ReadingBill: Sendable {
    package enum Purpose: Sendable {
        /// An answer to a query, on any thread.
        case answer
        /// A decision on a request or registration, by the store's one writer.
        case decision
    }

    /// The free size for a message with few entries, in bytes.
    package static let freeByteCount = 16 << 10

    package let purpose: Purpose
    private var free: Int

    package init(_ purpose: Purpose, free: Int = freeByteCount) {
        self.purpose = purpose
        self.free = free
    }

    /// Adds content.
    ///
    /// - Returns: its bytes that are not free.
    package mutating func charged(_ byteCount: Int) -> Int {
        defer { free = max(0, free - byteCount) }
        return max(0, byteCount - free)
    }
}
