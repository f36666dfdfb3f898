import Core
import WakuCrypto

extension DeviceToken {
    /// A Web Push subscription with the member `vapid`, which browsers leave out: a server that does not have the key can refuse the subscription,
    /// and its operator sees which keys are in use.
    ///
    /// - Parameter vapidKey: The server's VAPID public key in base64url.
    /// - Returns: The same token if it is not a valid subscription.
    /// - Throws: ``PushClientError`` with `invalid` when this is no key, or the subscription names another one.
    func naming(_ vapidKey: String) throws(PushClientError) -> DeviceToken {
        guard let key = Base64URL.decode(vapidKey).flatMap({ try? P256PublicKey(parsing: $0) }) else { throw .unusableVAPIDKey }
        guard let subscription = PushSubscription(json: bytes) else { return self }
        guard let named = subscription.vapidKey else {
            return PushSubscription(endpoint: subscription.endpoint, keys: subscription.keys, vapidKey: key)
                .map { DeviceToken(bytes: $0.json) } ?? self
        }
        guard named == key else { throw .otherVAPIDKey }
        return self
    }
}

extension DeviceProfile {
    /// The device token to register with a server. It was checked before: see ``DeviceToken/naming(_:)``.
    func deviceToken(for server: PushServer?) -> DeviceToken {
        guard platform == .webPush, let vapidKey = server?.vapidKey else { return deviceToken }
        return (try? deviceToken.naming(vapidKey)) ?? deviceToken
    }
}
