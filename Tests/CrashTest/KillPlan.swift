import TestSupport

/// The random plan of a round.
struct KillPlan {
    let phase: KillPhase
    /// The time of the kill, 0…1 of the phase's maximum duration.
    let moment: Double
    /// The number of replies or answers before the kill.
    let count: Int
    let mood: GorushStandIn.Mood
    /// Whether the daemon is stopped before it is ready.
    let isHasty: Bool
    /// Whether the network is cleared, so that the next daemon has only its database.
    let forgets: Bool

    init(using generator: inout SeededGenerator) {
        switch Int.random(in: 0..<100, using: &generator) {
        case ..<20: phase = .startUp
        case ..<42: phase = .load
        case ..<62: phase = .delivery
        case ..<72: phase = .answer
        case ..<92: phase = .shutDown
        default: phase = .stop
        }
        moment = Double.random(in: 0...1, using: &generator)
        count = Int.random(in: 1...10, using: &generator)
        switch Int.random(in: 0..<100, using: &generator) {
        case ..<60: mood = .well(0...10)
        case ..<80: mood = .well(20...400)
        default: mood = .failing
        }
        isHasty = phase == .shutDown && Int.random(in: 0..<5, using: &generator) == 0
        forgets = Int.random(in: 0..<4, using: &generator) == 0
    }
}
