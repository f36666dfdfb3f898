public import WakuCrypto

/// Progress of a client, for whoever shows it. No event holds a token.
public enum PushClientEvent: Hashable, Sendable {
    /// A server accepted the device.
    case registered(with: PublicKey, version: UInt64)
    /// A server will not accept it until something changes.
    case refused(by: PublicKey, RegistrationRefusal)
    /// A server that did not answer, or could not, is tried again: after so long.
    case willRetry(PublicKey, tries: Int, after: Duration)
    case unregistered(from: PublicKey)
    /// The own devices were advertised, in so many rows.
    case advertised(rowCount: Int)
    /// Devices of a registrant became known, or changed.
    case discovered(PublicKey, deviceCount: Int)
    /// An advertisement on a registrant's topic was not believed, or only up to a row. What was known before stays.
    case advertisementRejected(PublicKey, AdvertisementFlaw)
    case notified(messageID: [UInt8], DeviceOutcome)
    case gaveUp(messageID: [UInt8], DeviceOutcome)
    /// A message was not published; it is tried again.
    case relayFailed(reason: String)
    /// The store did not keep a change; it is tried again, and nothing is sent before.
    case storeFailed(reason: String)
}

/// Why a server does not accept a registration, however often it is sent.
public enum RegistrationRefusal: String, Hashable, Sendable, Codable {
    case malformedMessage = "MALFORMED_MESSAGE"
    case unsupportedTokenType = "UNSUPPORTED_TOKEN_TYPE"
    /// The server claims to have the highest version that there is.
    case versionExhausted = "VERSION_EXHAUSTED"
}

/// Why an advertisement, or the end of one, is not believed.
public enum AdvertisementFlaw: String, Hashable, Sendable, Codable {
    /// It can't be parsed.
    case unreadable
    /// The registrant did not sign it.
    case foreignSignature = "foreign-signature"
    /// A row without server key, of another registrant, or with a grant that does not hold. The rows before it count.
    case badRow = "bad-row"
}
