/// `notify.message`: a storage server's report of a new message.
///
///     @ account(33)   h hash(32–99)   n namespace   t stored at, ms   z expires, ms   ~ data (optional, at most 76,800)
package struct NotifyMessage: Hashable, Sendable {
    package static let maximumDataByteCount = 76_800
    package static let hashByteCounts = 32...99
    /// Limit of the whole report in bytes. Larger ones cannot be valid.
    package static let maximumByteCount = maximumDataByteCount + 1024

    package let account: AccountID
    /// Printable ASCII, 32 to 99 characters.
    package let hash: String
    package let namespace: Int16
    /// Unix milliseconds, not negative. May be in the future.
    package let storedAt: Int64
    /// Unix milliseconds, not negative.
    package let expiresAt: Int64
    package let data: ArraySlice<UInt8>?

    package init(parsing bytes: [UInt8]) throws(SessionDropReason) {
        guard bytes.count <= Self.maximumByteCount else { throw .tooLarge }
        guard let fields = try? BencodeValue(parsing: bytes[...], maximumValueCount: 32).dictionary,
            let account = fields["@"]?.bytes.flatMap({ AccountID($0) }), let hash = fields["h"]?.bytes,
            let namespace = fields["n"]?.integer.flatMap({ Int16(exactly: $0) }),
            let storedAt = fields["t"]?.integer, let expiresAt = fields["z"]?.integer
        else { throw .malformed }
        guard storedAt >= 0, expiresAt >= 0 else { throw .negativeTime }
        guard Self.hashByteCounts ~= hash.count, hash.allSatisfy({ 0x20...0x7E ~= $0 }) else { throw .badHash }
        data = try fields["~"].map { value throws(SessionDropReason) in
            guard let data = value.bytes else { throw .malformed }
            guard data.count <= Self.maximumDataByteCount else { throw .tooLarge }
            // A copy, because a slice would keep the whole message part in memory.
            return Array(data)[...]
        }
        self.account = account
        self.hash = String(decoding: hash, as: UTF8.self)
        (self.namespace, self.storedAt, self.expiresAt) = (namespace, storedAt, expiresAt)
    }

    package init(account: AccountID, hash: String, namespace: Int16, storedAt: Int64, expiresAt: Int64, data: [UInt8]?) {
        self.account = account
        self.hash = hash
        self.namespace = namespace
        self.storedAt = storedAt
        self.expiresAt = expiresAt
        self.data = data.map { $0[...] }
    }

    package func encoded() -> [UInt8] {
        var fields: BencodeDictionary = [
            "@": .bytes(account.bytes), "h": .text(hash), "n": .integer(Int64(namespace)), "t": .integer(storedAt),
            "z": .integer(expiresAt),
        ]
        fields["~"] = data.map { .bytes($0) }
        return BencodeValue.dictionary(fields).encoded()
    }
}
