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

extension PushClientEvent: CustomStringConvertible {
    /// A line, without the message's content.
    public var description: String {
        switch self {
        case .registered(let server, let version): "registered with \(server), version \(version)"
        case .refused(let server, let refusal): "refused by \(server): \(refusal.rawValue)"
        case .willRetry(let server, let tries, let pause): "will retry \(server) in \(pause.formatted), after \(tries) tries"
        case .unregistered(let server): "unregistered from \(server)"
        case .advertised(let rows): "advertised \(rows) rows"
        case .discovered(let registrant, let devices): "discovered \(devices) devices of \(registrant)"
        case .advertisementRejected(let registrant, let flaw): "rejected an advertisement of \(registrant): \(flaw.rawValue)"
        case .noServerKnown(let registrant): "no server is known for \(registrant)"
        case .notified(let id, let outcome), .gaveUp(let id, let outcome): "message \(hexString(id)): \(outcome)"
        case .relayFailed(let reason): "the relay failed: \(reason)"
        case .storeFailed(let reason): "the store failed: \(reason)"
        }
    }
}

extension DeviceOutcome: CustomStringConvertible {
    /// A phrase: the device, its owner, and the result.
    public var description: String {
        let device = installationID.map { "device \($0) of \(registrant)" } ?? "\(registrant)"
        return switch result {
        case .notified(let server): "\(device) was notified by \(server)"
        case .notAllowed: "\(device) is notified by its contacts only"
        case .gaveUp(let reason): "\(device) was not notified: \(reason.words)"
        }
    }
}

extension DeviceOutcome.GiveUpReason {
    fileprivate var words: String {
        switch self {
        case .noDevice: "no device is known"
        case .noServerKnown: "no server is known"
        case .notRegistered: "its servers have no registration of it"
        case .noServer: "no server answered"
        case .expired: "the message is too old"
        case .cancelled: "cancelled"
        }
    }
}
