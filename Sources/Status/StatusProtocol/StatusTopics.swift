public import WakuCrypto

/// The topic strings of Status. A message contains only the first 4 bytes of their Keccak-256. The strings of symmetric topics also serve as
/// passwords.
public enum StatusTopics {
    private static let partitionCount: UInt64 = 5000

    /// `contact-discovery-` + full hex. Clients send registrations here, encrypted to the key.
    public static func personal(_ key: PublicKey) -> String {
        "contact-discovery-" + key.hex
    }

    /// `contact-discovery-` + decimal(X coordinate mod 5000). Requests and all answers go here, encrypted to the key.
    public static func partitioned(_ key: PublicKey) -> String {
        "contact-discovery-\(partition(of: key))"
    }

    /// X coordinate mod 5000.
    static func partition(of key: PublicKey) -> UInt64 {
        key.x.reduce(0) { ($0 << 8 | UInt64($1)) % partitionCount }
    }

    /// hex(key hash), 128 digits: where deployed clients query a registrant. Encrypted with the topic's key.
    public static func query(_ registrant: KeyHash) -> String {
        registrant.hex
    }

    /// The published form of ``query(_:)``, which begins with `0x`.
    public static func publishedQuery(_ registrant: KeyHash) -> String {
        "0x" + registrant.hex
    }

    /// `0x` + full hex + `-contact-code`: where a registrant advertises. Encrypted with the topic's key.
    public static func contactCode(_ key: PublicKey) -> String {
        "0x" + key.hex + "-contact-code"
    }
}
