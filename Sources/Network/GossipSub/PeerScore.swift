/// The decaying counters of one peer's score. ``ScoreConfiguration`` defines their weights.
struct PeerScore: Hashable {
    private(set) var firstDeliveries = 0.0
    private(set) var invalid = 0.0
    private(set) var behaviour = 0.0

    func value(_ configuration: ScoreConfiguration) -> Double {
        let excess = max(0, behaviour - configuration.behaviourThreshold)
        return firstDeliveries - configuration.invalidWeight * invalid * invalid - configuration.behaviourWeight * excess * excess
    }

    mutating func deliveredFirst(_ configuration: ScoreConfiguration) {
        firstDeliveries = min(firstDeliveries + 1, configuration.firstDeliveryCap)
    }

    mutating func sentInvalid() {
        invalid += 1
    }

    mutating func misbehaved(_ count: Int = 1) {
        behaviour += Double(count)
    }

    mutating func decay(_ configuration: ScoreConfiguration) {
        func decayed(_ value: Double, _ factor: Double) -> Double {
            value * factor < configuration.zero ? 0 : value * factor
        }
        firstDeliveries = decayed(firstDeliveries, configuration.firstDeliveryDecay)
        invalid = decayed(invalid, configuration.invalidDecay)
        behaviour = decayed(behaviour, configuration.behaviourDecay)
    }

    /// Whether there is no misbehaviour.
    var isSpotless: Bool { invalid == 0 && behaviour == 0 }

    /// The connection ended: the first deliveries no longer count, the misbehaviour does.
    mutating func disconnected() {
        firstDeliveries = 0
    }
}
