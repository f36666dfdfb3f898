package import Core

extension AdminAPI {
    /// A test notification: that of a Status request for a random chat, without content.
    package struct TestPush: Codable, Sendable {
        package let platform: Platform
        /// The device token; a preview may use a placeholder.
        package let deviceToken: String
        package let apnTopic: String
        /// The hash of the registrant's key, as in the notification, hexadecimal.
        package let keyHash: String
        package let installation: String
        /// A raw value of `ContentKind`.
        package let kind: String
        /// The lifetime of a request, in seconds. A daemon uses its own.
        package var lifetime: Int
        /// Whether to return the JSON for gorush without posting it.
        package let isPreview: Bool

        package init(
            platform: Platform, deviceToken: String, apnTopic: String, keyHash: String, installation: String, kind: String, lifetime: Int,
            isPreview: Bool
        ) {
            self.platform = platform
            self.deviceToken = deviceToken
            self.apnTopic = apnTopic
            self.keyHash = keyHash
            self.installation = installation
            self.kind = kind
            self.lifetime = lifetime
            self.isPreview = isPreview
        }
    }

    /// The result of a ``TestPush``.
    package struct TestedPush: Codable, Sendable {
        /// Why nothing could be posted; nil otherwise.
        package var problem: String?
        /// The JSON that gorush would get.
        package var preview: String?
        /// accepted, refused or failed; nil if nothing was posted.
        package var outcome: String?
        package var reason: String?
        /// The number of tokens in gorush's reply, 1 for a single token; nil if the reply has no count.
        package var counted: Int?
        /// The token failure in gorush's reply, its own or that of Apple or Google.
        package var tokenFailure: String?
        /// How the node would classify the failure.
        package var tokenVerdict: String?

        package init() {}
    }
}
