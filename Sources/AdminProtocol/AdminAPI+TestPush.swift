package import PushTypes

extension AdminAPI {
    /// A test notification: that of a Status request for a random chat, without content.
    package struct TestPush: Codable, Sendable {
        package let platform: Platform
        /// In a preview it may be a stand-in.
        package let deviceToken: String
        package let apnTopic: String
        /// Of the registrant: the hash in the notification, hexadecimal.
        package let keyHash: String
        package let installation: String
        /// A raw value of `ContentKind`.
        package let kind: String
        /// In seconds: how long a request lives.
        package let lifetime: Int
        /// Nothing is posted.
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
        /// Tokens that gorush counted, of one; nil when its reply has no count.
        package var counted: Int?
        /// The token failure in gorush's reply, its own or that of Apple or Google.
        package var tokenFailure: String?
        /// How the node would judge that failure.
        package var tokenVerdict: String?

        package init() {}
    }
}
