/// The keys of an entry of `gorush-endpoints`.
enum EndpointKey: String, CaseIterable {
    case name
    case url
    case platforms
    case services
    case apnTopics = "apn-topics"
    case sandboxTopics = "apn-sandbox-topics"
    case ca
    case user
    case passwordFile = "password-file"
    case tokenFile = "token-file"
    case headers
    case payloadProfile = "payload-profile"
    case connections
    case batch
    case timeout

    /// Whether it may have several values.
    var isList: Bool {
        switch self {
        case .platforms, .services: true
        default: option?.isList ?? false
        }
    }

    /// The option of serve that has the same meaning; nil if there is none.
    var option: ServeOption? {
        switch self {
        case .name, .platforms, .services: nil
        case .url: Settings.gorush.option
        case .apnTopics: Settings.allowApnTopic.option
        case .sandboxTopics: Settings.sandboxApnTopic.option
        case .ca: Settings.gorushCa.option
        case .user: Settings.gorushUser.option
        case .passwordFile: Settings.gorushPasswordFile.option
        case .tokenFile: Settings.gorushTokenFile.option
        case .headers: Settings.gorushHeader.option
        case .payloadProfile: Settings.payloadProfile.option
        case .connections: Settings.gorushConnections.option
        case .batch: Settings.gorushBatch.option
        case .timeout: Settings.gorushTimeout.option
        }
    }
}

extension ConfigurationFile.Entry {
    subscript(key: EndpointKey) -> String? { options[key.rawValue]?.values.last }
    /// nil if the key is absent.
    func list(_ key: EndpointKey) -> [String]? { options[key.rawValue]?.values }
    /// File and line of a key, or of the entry if it is absent.
    func place(of key: EndpointKey) -> String { options[key.rawValue]?.place ?? place }
}
