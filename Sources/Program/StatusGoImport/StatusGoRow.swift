package import Core
import StatusProtocol
package import StatusServer

/// A raw row of status-go's table of registrations: any column may contain anything.
package struct StatusGoRow: Sendable {
    let keyHash: [UInt8]?
    let installationID: [UInt8]?
    let version: Int64?
    /// nil: the installation unregistered.
    let registration: [UInt8]?

    /// Why a row can't be imported. The server's rules for registrations apply, except for the grant: it is a signature by the client's
    /// key, and status-go keeps only the hash of that key.
    package enum Refusal: String, Error, CaseIterable, Sendable {
        case keyHash = "public_key is not a hash of 64 bytes"
        case installationID = "installation_id is empty or longer than 128 bytes"
        case version = "version is not a positive number"
        case malformed = "registration is not a valid PushNotificationRegistration"
        case contradiction = "registration contradicts the columns of its row"
        case platform = "token type is neither APNs nor Firebase"
        case deviceToken = "device token is empty"
        case accessToken = "access token is not a UUID"
        case apnTopic = "no APNs topic (--default-apn-topic supplies one)"
    }

    /// The registration or tombstone that the row contains.
    ///
    /// - Parameters:
    ///   - defaultTopic: the topic for APNs registrations that name none; empty if there is none.
    ///   - now: the time of the import, from which unused registrations expire.
    package func record(defaultTopic: String, at now: Timestamp) throws(Refusal) -> RegistrationRecord {
        guard let keyHash = keyHash.flatMap({ KeyHash(bytes: $0) }) else { throw .keyHash }
        guard let installationID, (1...InstallationID.maximumByteCount).contains(installationID.count) else { throw .installationID }
        guard let version, version > 0 else { throw .version }
        let key = RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: installationID))
        return RegistrationRecord(
            key: key, version: UInt64(version), changedAt: now,
            registration: try content(of: key, version: UInt64(version), defaultTopic: defaultTopic))
    }

    private func content(of key: RegistrationKey, version: UInt64, defaultTopic: String) throws(Refusal) -> [UInt8]? {
        guard let bytes = registration else { return nil }
        guard let registration = try? PushNotificationRegistration(parsing: bytes) else { throw .malformed }
        guard registration.installationID == key.installationID, registration.version == version, !registration.unregister else {
            throw .contradiction
        }
        guard let platform = registration.platform, platform != .webPush else { throw .platform }
        guard !registration.deviceToken.isEmpty else { throw .deviceToken }
        guard registration.accessToken.isUUID else { throw .accessToken }
        guard platform == .apn, registration.apnTopic.isEmpty else { return bytes }
        guard !defaultTopic.isEmpty else { throw .apnTopic }
        var completed = registration
        completed.apnTopic = defaultTopic
        return completed.encoded()
    }
}
