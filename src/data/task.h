#pragma once

namespace trireme {

// What a network learns of a sample: which class it is of, or a number.
enum class Task { kClassification, kRegression };

constexpr const char* NameOf(Task task) {  // as data.task says it
  return task == Task::kRegression ? "regression" : "classification";
}

}  // namespace trireme
