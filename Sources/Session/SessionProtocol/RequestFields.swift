import Core
import WakuCrypto

/// Reads the fields that subscriptions and unsubscriptions share. Every error is a ``RequestError`` that names the field.
struct RequestFields {
    private let object: JSONObject

    /// - Throws: ``RequestError/Code/badInput`` unless the value is an object.
    init(_ value: JSONValue) throws(RequestError) {
        guard let object = value.object else { throw RequestError(.badInput, "the request is not a JSON object") }
        self.object = object
    }

    private func required(_ name: StaticString) throws(RequestError) -> JSONValue {
        guard let value = object[name] else { throw .badInput(name, "missing") }
        return value
    }

    /// The value that `make` reads from the bytes of a required field.
    func value<Value>(_ name: StaticString, count: Int, _ make: ([UInt8]) -> Value?) throws(RequestError) -> Value {
        guard let bytes = try optionalBytes(name, count: count) else { throw .badInput(name, "missing") }
        guard let value = make(bytes) else { throw .badInput(name, "expected \(count) bytes") }
        return value
    }

    /// nil if the field is missing or null.
    private func optionalBytes(_ name: StaticString, count: Int) throws(RequestError) -> [UInt8]? {
        guard let value = object[name] else { return nil }
        guard let text = value.text, let bytes = EncodedBytes.decode(text, count: count) else {
            throw .badInput(name, "expected \(count) bytes in hex or base64")
        }
        return bytes
    }

    /// `session_ed25519`: required for session ids, ignored for other accounts.
    private func sessionKey(of account: AccountID) throws(RequestError) -> Ed25519PublicKey? {
        guard account.isSessionID else { return nil }
        return try value("session_ed25519", count: Ed25519PublicKey.byteCount) { try? Ed25519PublicKey(parsing: $0) }
    }

    private func delegation() throws(RequestError) -> Delegation {
        let tag = try optionalBytes("subkey_tag", count: 32)
        let token = try optionalBytes("subaccount", count: SubaccountToken.byteCount)
        let signature = try optionalBytes("subaccount_sig", count: Ed25519PublicKey.signatureByteCount)
        switch (tag, token, signature) {
        case (nil, nil, nil): return .none
        case (let tag?, nil, nil): return .subkey(tag: tag)
        case (nil, let token?, let signature?):
            guard let token = SubaccountToken(token) else { throw .badInput("subaccount", "expected 36 bytes") }
            return .subaccount(token, signature: Confidential(signature))
        case (nil, _?, nil): throw .badInput("subaccount_sig", "missing, subaccount is given")
        case (nil, nil, _?): throw .badInput("subaccount", "missing, subaccount_sig is given")
        default: throw .badInput("subkey_tag", "not together with subaccount")
        }
    }

    /// The account, and its signature of the request.
    func authority() throws(RequestError) -> SignedAuthority {
        let account = try value("pubkey", count: AccountID.byteCount) { AccountID($0) }
        return SignedAuthority(
            account: account, sessionKey: try sessionKey(of: account), delegation: try delegation(), signedAt: try signedAt(),
            signature: try value("signature", count: Ed25519PublicKey.signatureByteCount) { Confidential($0) })
    }

    /// `sig_ts`, Unix seconds.
    private func signedAt() throws(RequestError) -> Int64 {
        guard let seconds = try required("sig_ts").integer, 1...(1 << 53) ~= seconds else {
            throw .badInput("sig_ts", "expected an integer from 1 to 2^53")
        }
        return seconds
    }

    /// The device to subscribe. An unknown service is refused last: a malformed field is the first error.
    ///
    /// - Throws: ``RequestError/Code/badInput``, ``RequestError/Code/serviceNotAvailable``
    func device() throws(RequestError) -> SubscriberDevice {
        try device { info throws(RequestError) in SubscriberDevice(try webPushSubscription(info)) }
    }

    /// As ``device()``, for a device to unsubscribe: for Web Push `endpoint` is enough, since a client whose subscription has ended may not have its
    /// keys any more.
    func endedDevice() throws(RequestError) -> SubscriberDevice {
        try device { info throws(RequestError) in
            guard let endpoint = info["endpoint"]?.text, endpoint.utf8.count <= PushSubscription.endpointByteLimit,
                WebPushOrigin(endpoint: endpoint) != nil
            else { throw .badInput("service_info", "expected an https endpoint of at most 2048 bytes") }
            return SubscriberDevice(service: .webPush, token: endpoint)
        }
    }

    private func device(webPush: (JSONObject) throws(RequestError) -> SubscriberDevice) throws(RequestError) -> SubscriberDevice {
        guard let name = try required("service").text else { throw .badInput("service", "expected a string") }
        guard let info = try required("service_info").object else { throw .badInput("service_info", "expected an object") }
        let service = PushService(rawValue: name)
        if service == .webPush { return try webPush(info) }
        guard let token = info["token"]?.text else { throw .badInput("service_info", "token missing or no string") }
        // In Unicode scalars.
        let lengths = service?.isApple == true ? 64...64 : 1...4096
        // Bounds the bytes first, so that counting the scalars is cheap.
        guard token.utf8.count <= 4 * lengths.upperBound, lengths ~= token.unicodeScalars.count else {
            let expected = lengths.count == 1 ? "\(lengths.lowerBound)" : "\(lengths.lowerBound) to \(lengths.upperBound)"
            throw .badInput("service_info", "expected a token of \(expected) characters")
        }
        guard let service else { throw RequestError(.serviceNotAvailable, "service: unknown") }
        return SubscriberDevice(service: service, token: token)
    }

    /// From `endpoint`, `p256dh` and `auth`, and `vapid` if it is given.
    private func webPushSubscription(_ info: JSONObject) throws(RequestError) -> PushSubscription {
        guard let endpoint = info["endpoint"]?.text, let key = info["p256dh"]?.text, let secret = info["auth"]?.text else {
            throw .badInput("service_info", "expected endpoint, p256dh and auth")
        }
        if let vapid = info["vapid"], vapid.text == nil { throw .badInput("service_info", "expected vapid to be a string") }
        guard let subscription = PushSubscription(endpoint: endpoint, p256dh: key, auth: secret, vapid: info["vapid"]?.text) else {
            throw .badInput("service_info", "expected an https endpoint of at most 2048 bytes, points of P-256 and 16 bytes, in base64url")
        }
        return subscription
    }

    /// Clients have about ten. With 18,000, rows and the requests to storage servers were a hundred times as large.
    private static let namespaceLimit = 256

    func namespaces() throws(RequestError) -> [Int16] {
        let problem = "expected a list of 1 to \(Self.namespaceLimit) integers from -32768 to 32767, strictly ascending"
        guard let values = try required("namespaces").array, 1...Self.namespaceLimit ~= values.count else {
            throw .badInput("namespaces", problem)
        }
        var namespaces: [Int16] = []
        for value in values {
            guard let namespace = value.integer.flatMap({ Int16(exactly: $0) }), namespaces.last.map({ $0 < namespace }) ?? true else {
                throw .badInput("namespaces", problem)
            }
            namespaces.append(namespace)
        }
        return namespaces
    }

    func wantsData() throws(RequestError) -> Bool {
        guard let flag = try required("data").flag else { throw .badInput("data", "expected true or false") }
        return flag
    }
}
