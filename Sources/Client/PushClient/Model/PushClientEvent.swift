public import WakuCrypto

/// Progress of a client, for display. Events contain no tokens.
public enum PushClientEvent: Hashable, Sendable {
    /// A server accepted the device.
    case registered(with: PublicKey, version: UInt64)
    /// A server rejects the registration until something changes.
    case refused(by: PublicKey, RegistrationRefusal)
    /// A server that did not answer, or failed, is retried after this time.
    case willRetry(PublicKey, tries: Int, after: Duration)
    case unregistered(from: PublicKey)
    /// The client's devices were advertised, in `rowCount` rows.
    case advertised(rowCount: Int)
    /// Devices of a registrant were discovered, or changed.
    case discovered(PublicKey, deviceCount: Int)
    /// An advertisement on a registrant's topic was rejected, wholly or from some row on. Previously known devices stay.
    case advertisementRejected(PublicKey, AdvertisementFlaw)
    /// The registrant's devices can't be found: no advertisement names a server, and the application listed none.
    case noServerKnown(PublicKey)
    case notified(messageID: [UInt8], DeviceOutcome)
    case gaveUp(messageID: [UInt8], DeviceOutcome)
    /// A message was not published; it is retried.
    case relayFailed(reason: String)
    /// The store failed to keep a change; it is retried, and nothing is sent until it succeeds.
    case storeFailed(reason: String)
}

/// Why a server permanently rejects a registration.
public enum RegistrationRefusal: String, Hashable, Sendable, Codable {
    case malformedMessage = "MALFORMED_MESSAGE"
    case unsupportedTokenType = "UNSUPPORTED_TOKEN_TYPE"
    /// The server claims to have the highest possible version.
    case versionExhausted = "VERSION_EXHAUSTED"
}

/// Why an advertisement, or the rest of one, is rejected.
public enum AdvertisementFlaw: String, Hashable, Sendable, Codable {
    /// It can't be parsed.
    case unreadable
    /// The registrant did not sign it.
    case foreignSignature = "foreign-signature"
    /// A row without server key, of another registrant, or with an invalid grant. The rows before it are used.
    case badRow = "bad-row"
}
